"""Prefetching of a contraction's next columns: what is fetched, where nothing is, and the code, which is right."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from contraction_payloads import batch_matmul_transposed_b, matmul
from fixed_targets import assert_golden
from machine_code import machine_code
from payload_text import Payload
from recorded_schedules import started
from rule_ops import dispatch, epilogue
from rule_ops import matmul as product

from mlir_sched.compiler import CompilerPool, Shown, compile_showing
from mlir_sched.library.library import TunedSequence, build_library
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.targets.target import Target
from mlir_sched.tasks import TASK_FLAGS
from mlir_sched.tasks.task import Task
from mlir_sched.testing import check_candidates
from mlir_sched.trace import OnIllegal, Recorder, Trace
from mlir_sched.transform_scripts.llvm_cpu.prefetch import next_panel
from mlir_sched.transform_scripts.script.reading import extract_sequence, replace_sequence, sequence_text

SpaceFor = Callable[[str | Payload], DesignSpace]
TaskFor = Callable[[str | Payload], Task]
REGISTERS = "contraction.registers"
VALUES: dict[str, Value] = {
    "workgroup_0": (64,),
    "workgroup_1": (256,),
    "tail": "divisor",
    "columns": (64, 32),
    "rows": (32, 8),
    "cache_order": ("rows", "columns"),
    "register_order": ("columns", "rows"),
    "reduction_step": (4,),
    "prefetch": "yes",
}
"""Decisions for a product of 64x128 by 128x256; 32 rows pass while the panel of 32 columns stays."""
PREFETCH_T1 = re.compile(rb"\x0f\x18[\x10-\x17\x50-\x57\x90-\x97]")
"""x86's ``prefetcht1``, as encoded without a prefix: opcode, and a ModRM byte with 2 in its middle three bits."""

Levels = list[tuple[dict[str, int], tuple[str, ...]]]
FETCHED: list[tuple[str, Levels, tuple[int, int, int, int]]] = [
    ("rows pass under each panel", [({"rows": 8, "columns": 32}, ("columns", "rows"))], (1, 32, 64, 128)),
    (
        "rows pass in cache tiles",
        [({"rows": 16, "columns": 64}, ("rows", "columns")), ({"rows": 8, "columns": 32}, ("columns", "rows"))],
        (1, 32, 16, 128),
    ),
    (
        "the panel changes with the cache tile alone",
        [({"rows": 16, "columns": 32}, ("columns", "rows")), ({"rows": 8, "columns": 32}, ("rows", "columns"))],
        (1, 32, 64, 128),
    ),
    (
        "the reduction is blocked around the panels",
        [({"reduction": 64}, ("reduction",)), ({"rows": 8, "columns": 32}, ("columns", "rows"))],
        (1, 32, 64, 64),
    ),
    (
        "the reduction is blocked under each panel",
        [({"columns": 32, "reduction": 64}, ("columns", "reduction")), ({"rows": 8}, ("rows",))],
        (1, 32, 64, 128),
    ),
]


@pytest.mark.parametrize(("levels", "expected"), [case[1:] for case in FETCHED], ids=[case[0] for case in FETCHED])
def test_the_next_panel_is_fetched_while_the_rows_pass(levels: Levels, expected: tuple[int, int, int, int]) -> None:
    s, _, mm = started(dispatch(product(128, m=64, n=256), epilogue("f32", ("arith.addf",), m=64, n=256)))
    loops = {loop.name: loop for loop in (*mm.tiled, mm.reduction)}
    for sizes, order in levels:
        s.tile(mm.op, {loops[name]: sizes[name] for name in order}, order=[loops[name] for name in order])
    s.tile(mm.op, {mm.reduction: 4})
    found = next_panel(s, mm)
    assert found is not None
    assert (found.ahead, found.distance, found.sweep, found.depth) == expected


NOTHING: list[tuple[str, dict[str, int], tuple[str, ...]]] = [
    ("small", {"n": 32, "k": 64}, ("columns", "rows")),
    ("every register tile has a panel of its own", {"n": 256, "k": 128}, ("rows", "columns")),
]


@pytest.mark.parametrize(("shape", "order"), [case[1:] for case in NOTHING], ids=[case[0] for case in NOTHING])
def test_nothing_is_fetched_that_stays_in_the_cache_or_is_used_once(
    shape: dict[str, int], order: tuple[str, ...]
) -> None:
    s, _, mm = started(dispatch(product(shape["k"], m=64, n=shape["n"])))
    loops = {loop.name: loop for loop in mm.tiled}
    s.tile(mm.op, {loops["rows"]: 8, loops["columns"]: 16}, order=[loops[name] for name in order])
    s.tile(mm.op, {mm.reduction: 4})
    assert next_panel(s, mm) is None


def test_nothing_is_fetched_where_the_rows_pass_under_one_step_of_the_reduction() -> None:
    s, _, mm = started(dispatch(product(128, m=64, n=256)))
    loops = {loop.name: loop for loop in mm.tiled}
    s.tile(mm.op, {mm.reduction: 4})
    s.tile(mm.op, {loops["rows"]: 8, loops["columns"]: 16}, order=[loops["columns"], loops["rows"]])
    assert next_panel(s, mm) is None


@pytest.mark.parametrize(
    "payload",
    [matmul(64, 256, 128, "f16", "f32"), batch_matmul_transposed_b(2, 64, 256, 128), matmul(1, 512, 512)],
    ids=["converted", "strided columns", "one row"],
)
def test_it_is_not_drawn_where_the_code_would_not_fit(space_for: SpaceFor, payload: Payload) -> None:
    space, rng = space_for(payload), np.random.default_rng(0)
    assert not any("prefetch" in space.sample(rng, REGISTERS).values for _ in range(30))


def test_most_draws_prefetch(space_for: SpaceFor) -> None:
    space, rng = space_for(matmul(64, 256, 128)), np.random.default_rng(0)
    drawn = [space.sample(rng, "contraction.cache").values.get("prefetch") for _ in range(100)]
    assert drawn.count("yes") > drawn.count("no") > 0


def _trace(space: DesignSpace, **changes: Value) -> Trace:
    return space.run(REGISTERS, Recorder(VALUES | changes, on_illegal=OnIllegal.REJECT))[0]


def test_golden_script(space_for: SpaceFor, golden: Callable[[str, str], None]) -> None:
    assert_golden(golden, "contraction_prefetch", space_for(matmul(64, 256, 128)), REGISTERS, VALUES)


def test_a_sequence_takes_what_it_includes_along(space_for: SpaceFor, task_for: TaskFor) -> None:
    payload = matmul(64, 256, 128)
    space, task = space_for(payload), task_for(payload)
    trace, other = _trace(space), _trace(space, reduction_step=(8,))
    library = build_library([TunedSequence("s", task.source, space, trace)])
    alone = extract_sequence(library, "s")
    assert alone.count("memref.prefetch") == library.count("memref.prefetch") > 0
    assert sequence_text(alone) == sequence_text(space.script(trace, "s"))
    changed = replace_sequence(library, "s", space.script(other, "s"))
    assert sequence_text(changed, "s") == sequence_text(space.script(other, "s"))


TWO_LAYERS = """
func.func @main(%a: tensor<64x128xf32>) -> (tensor<64x256xf32>, tensor<64x256xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x256xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x256xf32>) -> tensor<64x256xf32>
  %first = arith.constant dense<1.0> : tensor<128x256xf32>
  %second = arith.constant dense<2.0> : tensor<128x256xf32>
  %b = util.optimization_barrier %first : tensor<128x256xf32>
  %c = util.optimization_barrier %second : tensor<128x256xf32>
  %x = linalg.matmul ins(%a, %b : tensor<64x128xf32>, tensor<128x256xf32>) outs(%fill : tensor<64x256xf32>)
      -> tensor<64x256xf32>
  %y = linalg.matmul ins(%a, %c : tensor<64x128xf32>, tensor<128x256xf32>) outs(%fill : tensor<64x256xf32>)
      -> tensor<64x256xf32>
  return %x, %y : tensor<64x256xf32>, tensor<64x256xf32>
}
"""


@pytest.mark.sweep("landing")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks for an instruction of x86-64")
@pytest.mark.parametrize("two_layers", [False, True], ids=["at a known offset", "at an offset of the program"])
def test_the_code_of_a_program_prefetches(
    space_for: SpaceFor, task_for: TaskFor, here: Target, tmp_path: Path, two_layers: bool
) -> None:
    payload, flags = matmul(64, 256, 128), (*here.flags, *TASK_FLAGS)
    space, task = space_for(payload), task_for(payload)
    model, found = tmp_path / "model.mlir", {}
    model.write_text(TWO_LAYERS if two_layers else payload.text)
    for prefetch in ("yes", "no"):
        library = tmp_path / f"{prefetch}.mlir"
        library.write_text(build_library([TunedSequence("s", task.source, space, _trace(space, prefetch=prefetch))]))
        program = compile_showing(model, flags, library, (Shown.SCRIPTS,))
        assert {each.sequence for each in program.scripts} == {"s"}
        found[prefetch] = bool(PREFETCH_T1.search(machine_code(program.vmfb)))
    assert found == {"yes": True, "no": False}


@pytest.mark.landing
def test_candidates_that_prefetch_are_right(space_for: SpaceFor, task_for: TaskFor, here: Target) -> None:
    payload = matmul(64, 256, 128)
    space, task, rng = space_for(payload), task_for(payload), np.random.default_rng(5)
    traces = [space.sample(rng, sketch) for sketch in (REGISTERS, "contraction.cache") for _ in range(12)]
    chosen = [trace for trace in traces if trace.values.get("prefetch") == "yes"][:6]
    assert {trace.values["tail"] for trace in chosen} == {"divisor", "peel"}
    with Runner(RunnerOptions()) as runner, CompilerPool(task.flags) as pool:
        assert check_candidates(task, space, chosen, pool, runner) == [None] * len(chosen)
