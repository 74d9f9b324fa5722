"""Shapes in no other table: each becomes dispatches with sketches, whose random candidates compile and are right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from payload_text import Payload

from benchmarks.operators.shapes import SHAPES, Shape
from mlir_sched.compiler import CompilerPool
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks import extract
from mlir_sched.tasks.task import Task
from mlir_sched.testing import check_candidates
from mlir_sched.trace import OnIllegal, Recorder

SpaceFor = Callable[[str | Payload], DesignSpace]
SMALL = {shape.name: Payload(shape.small) for shape in SHAPES}
DRAWS = 1
"""Random candidates per dispatch that are compiled and run."""
ELSEWHERE = {
    *("matmul_tiny", "matmul_tall", "matmul_f16", "matmul_bf16", "matmul_transposed_both", "gelu", "cast_f16"),
    *("conv_odd_batch", "conv_stride_3", "conv_bf16", "conv_3d", "conv_grouped", "depthwise_30_strided"),
    *("depthwise_multiplier", "softmax_4d", "sum_inner_two", "average_pool"),
}
"""Shapes whose class another test or shape checks in the same way."""
CHECKED = [shape for shape in SHAPES if shape.name not in ELSEWHERE]


@pytest.fixture(scope="module")
def pool(here: Target) -> Iterator[CompilerPool]:
    with CompilerPool(here.flags) as pool:
        yield pool


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner(RunnerOptions()) as runner:
        yield runner


@pytest.mark.promise
@pytest.mark.sweep("nightly")
@pytest.mark.parametrize("shape", CHECKED, ids=[shape.name for shape in CHECKED])
def test_every_dispatch_is_tuned_and_right(
    shape: Shape, here: Target, pool: CompilerPool, runner: Runner, tmp_path: Path
) -> None:
    path = tmp_path / "main.mlir"
    path.write_text(shape.small)
    tasks = extract(path, here).tasks
    assert {task.not_tunable for task in tasks} <= {"", "it only copies (IREE turns it into a copy of its own)"}
    computing = [task for task in tasks if task.dispatch is not None]
    assert computing
    for task in computing:
        check(task, here, pool, runner)


def check(task: Task, target: Target, pool: CompilerPool, runner: Runner) -> None:
    """Compile and run random candidates of a task."""
    assert task.dispatch is not None
    space, rng = DesignSpace(Space.default(target), task.dispatch, target), np.random.default_rng(7)
    assert space.sketches, task.dispatch
    traces = list({space.sample(rng): None for _ in range(DRAWS)})
    assert check_candidates(task, space, traces, pool, runner) == [None] * len(traces)


def test_no_shape_is_there_twice() -> None:
    assert len({shape.name for shape in SHAPES}) == len(SHAPES) == len({shape.text for shape in SHAPES})


def test_a_prime_reduction_keeps_whole_vectors_of_partial_sums(space_for: SpaceFor) -> None:
    space, rng = space_for(SMALL["dot_odd"]), np.random.default_rng(0)  # 1003 = 17 * 59
    drawn = [space.sample(rng).values for _ in range(40)]
    lanes = {values["tail"]: values["lanes_1003"] for values in drawn}
    assert set(lanes) == {"divisor", "peel"}
    assert {v["lanes_1003"] for v in drawn if v["tail"] == "peel"} == {16, 32, 64, 128}
    assert {v["lanes_1003"] for v in drawn if v["tail"] == "divisor"} <= {(1,), (17,), (59,)}


def test_even_reductions_have_no_tail(space_for: SpaceFor) -> None:
    space = space_for("row_sum")
    assert all("tail" not in space.sample(np.random.default_rng(seed)).values for seed in range(10))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("sum_first", {"workgroup_0": (33,), "tail": "peel", "rows": 16}),
        ("maximum", {"workgroup_0": (31,), "tail": "peel", "rows": (1,), "lanes_77": 16}),
    ],
)
def test_golden_script_of_peeled_reductions(
    space_for: SpaceFor, golden: Callable[[str, str], None], name: str, values: dict[str, Value]
) -> None:
    space = space_for(SMALL[name])
    script = space.script(space.run("reduction", Recorder(values, on_illegal=OnIllegal.REJECT))[0])
    golden(f"reduction_peel_{name}", script)
