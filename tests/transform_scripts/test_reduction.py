"""The llvm-cpu reduction module: rows as a whole, reductions along columns, and shapes that no vector divides."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from fixed_targets import FIXED
from payload_text import Payload
from payloads import independent_ops, layernorm, row_sum, softmax

from mlir_sched.compiler import CompilerPool
from mlir_sched.errors import IllegalTraceError
from mlir_sched.payload import OpKind
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.testing import check_candidates
from mlir_sched.trace import OnIllegal, Recorder, Trace
from mlir_sched.transform_scripts.llvm_cpu import ReductionTiling
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import parallel_loops
from mlir_sched.transform_scripts.verbs.draws import MASK

SpaceFor = Callable[[str | Payload], DesignSpace]
TaskFor = Callable[[str | Payload], Task]
WHOLE: dict[str, Value] = {
    "workgroup_0": (2,),
    "workgroup_1": (32,),
    "rows": (16,),
    "later_rows": "single",
    "row": "whole",
    "lanes_128": (16,),
}
CANDIDATES = 4


def sum_over(dimensions: tuple[int, ...], shape: tuple[int, ...]) -> Payload:
    """Return the sum of a tensor over some of its dimensions."""
    kept = [extent for d, extent in enumerate(shape) if d not in dimensions]
    a, r = f"tensor<{'x'.join(map(str, shape))}xf32>", f"tensor<{'x'.join(map(str, kept))}xf32>"
    return Payload(f"""func.func @main(%a: {a}) -> {r} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {r}
  %f = linalg.fill ins(%zero : f32) outs(%e : {r}) -> {r}
  %r = linalg.reduce ins(%a : {a}) outs(%f : {r}) dimensions = {list(dimensions)} (%x: f32, %acc: f32) {{
    %s = arith.addf %x, %acc : f32
    linalg.yield %s : f32
  }}
  return %r : {r}
}}
""")


def largest_of(dimension: int, shape: tuple[int, int]) -> Payload:
    """Return the largest f16 numbers of a matrix along a dimension."""
    a, r = f"tensor<{shape[0]}x{shape[1]}xf16>", f"tensor<{shape[1 - dimension]}xf16>"
    return Payload(f"""func.func @main(%a: {a}) -> {r} {{
  %least = arith.constant -6.0e+04 : f16
  %e = tensor.empty() : {r}
  %f = linalg.fill ins(%least : f16) outs(%e : {r}) -> {r}
  %r = linalg.reduce {{ arith.maximumf }} ins(%a : {a}) outs(%f : {r}) dimensions = [{dimension}]
  return %r : {r}
}}
""")


def largest_of_windows(size: int, channels: int) -> Payload:
    """Return the largest f16 numbers of every window of 3x3 pixels, two pixels apart."""
    made = (size - 3) // 2 + 1
    a, r = f"tensor<1x{size}x{size}x{channels}xf16>", f"tensor<1x{made}x{made}x{channels}xf16>"
    return Payload(f"""func.func @main(%a: {a}) -> {r} {{
  %least = arith.constant -6.0e+04 : f16
  %e = tensor.empty() : {r}
  %w = tensor.empty() : tensor<3x3xf16>
  %f = linalg.fill ins(%least : f16) outs(%e : {r}) -> {r}
  %r = linalg.pooling_nhwc_max {{strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}}
      ins(%a, %w : {a}, tensor<3x3xf16>) outs(%f : {r}) -> {r}
  return %r : {r}
}}
""")


def softmax_of_columns(rows: int, columns: int) -> Payload:
    """Return a softmax over the outer dimension."""
    a = f"tensor<{rows}x{columns}xf32>"
    return Payload(f"""func.func @main(%a: {a}) -> {a} {{
  %e = tensor.empty() : {a}
  %r = linalg.softmax dimension(0) ins(%a : {a}) outs(%e : {a}) -> {a}
  return %r : {a}
}}
""")


SHAPES = {
    "softmax_prime": softmax(1, 61, 251),
    "softmax_uneven": softmax(1, 24, 250),
    "softmax_of_columns": softmax_of_columns(96, 80),
    "layernorm_uneven": layernorm(24, 100),
    "row_sum_uneven": row_sum(37, 1003),
    "column_sum": sum_over((0,), (128, 96)),
    "two_dimensions": sum_over((0, 2), (8, 24, 200)),
}


F16_MAXIMA = {
    "rows": largest_of(1, (64, 96)),
    "uneven rows": largest_of(1, (45, 77)),
    "columns": largest_of(0, (96, 64)),
    "windows": largest_of_windows(17, 64),
}


def traces_of(space: DesignSpace, values: dict[str, Value], count: int) -> list[Trace]:
    """Return random legal traces that agree with some values."""
    rng, traces = np.random.default_rng(3), dict[Trace, None]()
    for _ in range(500):
        try:
            traces[space.run("reduction", Recorder(values, rng, OnIllegal.REJECT))[0]] = None
        except IllegalTraceError:
            continue
        if len(traces) == count:
            break
    return list(traces)


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", SHAPES)
def test_random_candidates_compute_the_right_numbers(task_for: TaskFor, here: Target, name: str) -> None:
    task = task_for(SHAPES[name])
    assert task.dispatch is not None
    space = DesignSpace(Space.default(here), task.dispatch, here)
    traces = traces_of(space, {}, CANDIDATES)
    with Runner(RunnerOptions()) as runner, CompilerPool(task.flags) as pool:
        assert check_candidates(task, space, traces, pool, runner) == [None] * len(traces)


@pytest.mark.parametrize("name", F16_MAXIMA)
def test_maxima_of_f16_numbers_become_vectors_behind_the_pass_that_widens_them(
    task_for: TaskFor, here: Target, name: str
) -> None:
    task = task_for(F16_MAXIMA[name])
    assert task.dispatch is not None
    space = DesignSpace(Space.default(here), task.dispatch, here)
    rng = np.random.default_rng(3)
    traces = list(dict.fromkeys(space.sample(rng) for _ in range(CANDIDATES)))
    with Runner(RunnerOptions()) as runner, CompilerPool(task.flags) as pool:
        assert check_candidates(task, space, traces, pool, runner) == [None] * len(traces)


def test_golden_script_of_whole_rows(space_for: SpaceFor, golden: Callable[[str, str], None]) -> None:
    space = space_for("softmax")
    golden(
        "reduction_whole_rows", space.script(space.run("reduction", Recorder(WHOLE, on_illegal=OnIllegal.REJECT))[0])
    )


@pytest.mark.parametrize(("name", "marked"), [("independent_ops", True), ("softmax", False), ("layernorm", False)])
def test_ops_that_fusion_may_reorder_are_found_by_marks(space_for: SpaceFor, name: str, marked: bool) -> None:
    space = space_for(independent_ops(64, 128) if marked else name)
    scripts = [space.script(trace) for trace in traces_of(space, {}, 6)]
    assert space.dispatch.is_chain != marked
    assert [script.count('"mlir_sched.op_') for script in scripts] == [4 if marked else 0] * 6
    assert all(("{mlir_sched.op_1}" in script) == marked for script in scripts)


def test_fills_of_unlike_tiles_are_not_masked_together(space_for: SpaceFor) -> None:
    dispatch = space_for("softmax").dispatch
    first, *others = [op for op in dispatch.ops if op.kind is OpKind.FILL]
    assert others
    s = Schedule(dispatch, FIXED, Recorder())
    s.tile(first, {parallel_loops(first)[-1]: 4})
    with pytest.raises(IllegalTraceError, match="cannot share their masks"):
        s.vectorize(*dispatch.ops, tail=MASK)


def test_long_rows_are_never_whole(space_for: SpaceFor) -> None:
    short, long = ({t.values.get("row") for t in traces_of(space_for(softmax(1, 16, n)), {}, 60)} for n in (1024, 2048))
    assert "whole" in short
    assert long == {None}


def test_vectors_of_a_column_sum_lie_across_the_columns(space_for: SpaceFor) -> None:
    traces = traces_of(space_for(SHAPES["column_sum"]), {}, 20)
    assert {rows[0] % 16 for t in traces if isinstance(rows := t.values["rows"], tuple)} == {0}
    assert not [name for t in traces for name in t.values if name.startswith("lanes")]


@pytest.mark.parametrize("reciprocals", [True, False])
def test_division_by_reciprocals_can_be_refused(task_for: TaskFor, reciprocals: bool) -> None:
    dispatch = task_for("softmax").dispatch
    assert dispatch is not None
    space = DesignSpace(
        Space.default(FIXED).replace("reduction", ReductionTiling(reciprocals=reciprocals)), dispatch, FIXED
    )
    (trace,) = traces_of(space, WHOLE, 1)
    assert ("fastmath<arcp>" in space.script(trace)) == reciprocals
