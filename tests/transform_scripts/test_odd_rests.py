"""Columns that register tiles of a product leave over, and that are no vectors: scripts, code and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from contraction_payloads import (
    accumulating_matmul,
    batch_matmul_transposed_b,
    matmul,
    matmul_below_diagonal,
    matmul_bias_gelu,
    matmul_two_epilogues,
    mixed_contraction,
    product_of_pixels,
    product_over_heads,
)
from machine_code import machine_code
from payload_text import Payload

from mlir_sched.compiler import CompilerPool
from mlir_sched.errors import IllegalTraceError
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.testing import check_candidates
from mlir_sched.trace import Recorder, Trace

SpaceFor = Callable[[str | Payload], DesignSpace]
TaskFor = Callable[[str | Payload], Task]
REGISTERS, CACHE = "contraction.registers", "contraction.cache"
PRODUCTS: Mapping[str, Payload] = {
    "rows_too": matmul(37, 53, 29),
    "few_rows": matmul(7, 49, 40),
    "vector": matmul(1, 61, 40),
    "f16": matmul(20, 54, 24, "f16", "f32"),
    "f16 in f16": matmul(20, 104, 24, "f16"),
    "bf16": matmul(20, 54, 24, "bf16", "f32"),
    "i8": matmul(20, 54, 24, "i8", "i32"),
    "accumulating": accumulating_matmul(30, 55, 24),
    "gelu": matmul_bias_gelu(41, 61, 13),
    "pieces of one size": matmul_bias_gelu(20, 127, 24),
    "transposed result": matmul_two_epilogues(29, 54, 24),
    "below diagonal": matmul_below_diagonal(33, 51, 20),
    "batch": batch_matmul_transposed_b(3, 37, 49, 32),
    "batch of mixed types": mixed_contraction({"b": 3, "m": 13, "n": 51, "k": 24}, ("bmk", "bkn", "bmn"), "f16"),
    "two reductions": product_over_heads(29, 54, 3, 16),
    "rows of two loops": product_of_pixels({"n": 59, "i": 5, "m": 14, "k": 24}, ("imk", "kn", "imn")),
    "crossed": product_of_pixels({"n": 29, "m": 52, "k": 24}, ("nk", "mk", "nm")),
}


def cut(space: DesignSpace, sketch: str, count: int, values: Mapping[str, Value]) -> list[Trace]:
    """Return drawn traces whose tiles leave over columns that are cut into vectors."""
    rng, found = np.random.default_rng(5), dict[str, Trace]()
    for _ in range(2000):
        try:
            trace, schedule = space.run(sketch, Recorder({"tail": "peel", **values}, rng))
        except IllegalTraceError:
            continue
        if schedule.notes.get("rest_in_vectors"):
            found.setdefault(trace.key, trace)
        if len(found) == count:
            break
    return [*found.values()]


def test_only_what_is_left_over_and_no_vector_is_cut(space_for: SpaceFor) -> None:
    """Tiles of 64 leave 36 of 100 columns, those of 32 leave 4; tiles of 64 leave 32 of 96 columns."""
    tile: dict[str, Value] = {"tail": "peel", "columns": (100,), "register_rows": 5}
    space = space_for(matmul(100, 100, 100))
    wide, narrow = (space.completed(REGISTERS, tile | {"register_columns": width}) for width in (64, 32))
    assert "transform.loop.unroll" in space.script(wide)
    assert "transform.loop.unroll" not in space.script(narrow)
    even = space_for(matmul(103, 96, 100)).completed(REGISTERS, tile | {"columns": (96,), "register_columns": 64})
    assert even.values["register_columns"] == 64
    assert "transform.loop.unroll" not in space_for(matmul(103, 96, 100)).script(even)


@pytest.mark.landing
def test_the_code_of_what_is_left_over_is_vectors(space_for: SpaceFor, task_for: TaskFor) -> None:
    """Sums of 36 columns that are kept as scalars take more than three times the code of the whole product."""
    payload = matmul(100, 100, 100)
    space, task = space_for(payload), task_for(payload)
    tile: dict[str, Value] = {"workgroup_0": (100,), "workgroup_1": (100,), "tail": "peel", "columns": (100,)}
    tile |= {"rows": (100,), "register_rows": 5, "register_order": ("columns", "rows"), "reduction_step": (1,)}
    traces = [space.completed(REGISTERS, tile | {"register_columns": width}) for width in (32, 64)]
    with CompilerPool(task.flags) as pool:
        compiled = pool.compile(task.source, [space.script(trace) for trace in traces])
        code = {place: machine_code(each.vmfb) for place, each in compiled if each.vmfb}
    assert len(code[1]) < 2 * len(code[0])


@pytest.mark.landing
@pytest.mark.sweep("nightly")
@pytest.mark.parametrize("name", PRODUCTS)
def test_numbers_are_right(task_for: TaskFor, here: Target, name: str) -> None:
    task = task_for(PRODUCTS[name])
    assert task.dispatch is not None
    space = DesignSpace(Space.default(here), task.dispatch, here)
    traces = [trace for sketch in (REGISTERS, CACHE) for trace in cut(space, sketch, 2, {})]
    if name in ("batch", "crossed"):
        traces += cut(space, REGISTERS, 2, {"columns_operand": "panel", "register_order": ("columns", "rows")})
    assert traces
    with Runner(RunnerOptions()) as runner, CompilerPool(task.flags) as pool:
        assert check_candidates(task, space, traces, pool, runner) == [None] * len(traces)
