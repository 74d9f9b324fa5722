"""Products in layouts of channels-first images: which loops change places, what is copied, the code, the numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import rule_ops
from contraction_payloads import product_of_pixels
from fixed_targets import assert_golden
from payload_text import Payload
from recorded_schedules import DISPATCH, started

from mlir_sched.compiler import CompilerPool
from mlir_sched.errors import FailureClass
from mlir_sched.payload import Dispatch
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.runner.checks.numeric_checks import checks_for_task
from mlir_sched.runner.program import program_of_task
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.tasks.task import Task
from mlir_sched.testing import check_candidates

SpaceFor = Callable[[str | Payload], DesignSpace]
TaskFor = Callable[[str | Payload], Task]
REGISTERS = "contraction.registers"
VALUES: dict[str, Value] = {
    "workgroup_0": (29,),
    "workgroup_1": (52,),
    "tail": "peel",
    "columns": (52,),
    "register_columns": 16,
    "rows": (29,),
    "register_rows": 8,
    "cache_order": ("rows", "columns"),
    "register_order": ("columns", "rows"),
    "reduction_step": (4,),
    "columns_operand": "panel",
}
"""Decisions for a product of 29 rows and 52 columns that sums over 24; its columns are strided."""


def generic(first: tuple[int, int], second: tuple[int, int], name: str = "linalg.generic") -> Dispatch:
    """Return a product of 8 rows and 16 columns whose inputs are indexed by the given loops."""
    _, product, _ = DISPATCH.ops
    extents = (8, 16, 12)
    inputs = tuple(rule_ops.operand("f32", tuple(extents[d] for d in dims), dims, 3) for dims in (first, second))
    return rule_ops.dispatch(replace(product, name=name, inputs=inputs))


@pytest.mark.parametrize(
    ("payload", "crossed"),
    [
        (generic((0, 2), (2, 1)), False),
        (generic((2, 0), (1, 2)), False),
        (generic((2, 1), (0, 2)), True),
        (generic((1, 2), (0, 2)), True),
        (generic((2, 1), (0, 2), "linalg.matmul"), False),
    ],
)
def test_loops_are_crossed_where_the_second_input_has_the_outer_loop(payload: Dispatch, crossed: bool) -> None:
    assert started(payload)[2].is_crossed == crossed


def test_loops_that_change_places_do_so_in_code_alone() -> None:
    s, emitter, mm = started(generic((2, 1), (0, 2)))
    rows, columns = mm.tiled
    s.tile(mm.op, {rows: 4, columns: 8})
    emitter.take()
    s.interchange(mm.op, rows, columns)
    s.tile(mm.op, {rows: 2})
    s.vectorize(mm.op, tail="mask")
    assert [line for line in emitter.lines if line not in ("patterns", "cse")] == [
        "h2 = interchange h1 to [1, 0, 2]",
        "h3 = tile h2 by ['0', '2', '0']",
        "vectorize h3 by ['8', '2', '12']",
    ]
    assert s.tile_of(mm.op) == (2, 8, 12)


def test_what_full_tiles_read_is_copied_after_peeling() -> None:
    s, emitter, mm = started()
    rows, columns = mm.tiled
    s.tile(mm.op, {rows: 3, columns: 5}, order=(columns, rows))
    s.peel()
    emitter.take()
    s.promote(mm.op, mm.op.inputs[1], innermost=columns, tile={columns: 5, mm.reduction: 2}, around=2)
    assert emitter.take()[-2:] == ["split h3 in 4", "h4 = hoist operand 1 of h3#0 out of 2 loops as [0, 1]"]
    s.vectorize(mm.op, tail="peel")
    assert emitter.take()[-6:] == [
        "h5 = match linalg.matmul",
        "vectorize h5",
        "h6 = match linalg.transpose",
        "vectorize h6",
        "h7 = match tensor.pad",
        "vectorize h7 by ['2', '5']",
    ]


def test_golden_script(space_for: SpaceFor, golden: Callable[[str, str], None]) -> None:
    assert_golden(golden, "contraction_peeled_panel", space_for("product_to_channels_first"), REGISTERS, VALUES)


@pytest.mark.landing
@pytest.mark.parametrize("name", ["channels_first_product", "product_to_channels_first"])
def test_candidates_of_every_tail_are_right(space_for: SpaceFor, task_for: TaskFor, name: str) -> None:
    space, task, rng = space_for(name), task_for(name), np.random.default_rng(5)
    drawn = [space.sample(rng, sketch) for sketch in (REGISTERS, "contraction.cache") for _ in range(60)]
    ways: list[tuple[str, str | None]] = [("divisor", None), ("peel", None), ("mask", None)]
    if name == "product_to_channels_first":
        ways += [("peel", "in_place"), ("peel", "panel"), ("divisor", "panel")]
    found = {(t.values.get("tail"), t.values.get("columns_operand"), t.sketch): t for t in drawn}
    traces = [trace for (tail, operand, _), trace in found.items() if (tail, operand) in ways]
    assert {(t.values["tail"], t.values.get("columns_operand")) for t in traces} == set(ways)
    with Runner(RunnerOptions()) as runner, CompilerPool(task.flags) as pool:
        assert check_candidates(task, space, traces, pool, runner) == [None] * len(traces)


def test_a_result_in_another_order_is_found_wrong(task_for: TaskFor) -> None:
    extents = {"n": 32, "m": 32, "k": 24}
    right, wrong = (task_for(product_of_pixels(extents, ("mk", "nk", result))) for result in ("nm", "mn"))
    with CompilerPool(right.flags, workers=1) as pool:
        compiled = [dict(pool.compile(task.source, [None]))[0].vmfb for task in (right, wrong)]
    untuned, planted = (program_of_task(right, vmfb) for vmfb in compiled if vmfb is not None)
    with Runner(RunnerOptions()) as runner:
        (found,) = runner.check(untuned, [planted], checks_for_task(right))
    assert found is not None
    assert found.kind is FailureClass.WRONG_RESULT
