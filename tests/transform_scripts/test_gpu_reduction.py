"""Reductions on GPUs by threads with results of their own: which dispatches, what rules refuse, scripts, the PTX."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from fixed_targets import FIXED_CUDA, FIXED_VULKAN, assert_golden, assert_refused, space_of
from payload_text import Payload
from payloads import row_sum, softmax, sum_of_squares
from ptx import assembled, ptx_of
from reduction_payloads import FOUR_LOOPS, REDUCTIONS, UNEVEN, reduced, sum_of_bytes

from mlir_sched.compiler import CompilerPool
from mlir_sched.errors import FailureClass
from mlir_sched.sampling import Value
from mlir_sched.tasks.task import Task
from mlir_sched.trace import OnIllegal, Recorder
from mlir_sched.transform_scripts.structures import Reduction

TaskFor = Callable[[str | Payload], Task]
BY_THREADS = {"reduction", "linear_reduction"}
SUBGROUPS = "subgroup_reduction"
SAMPLES = 2
"""Random candidates per sketch and payload that are compiled for CUDA and assembled."""


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_that_no_subgroup_walks_have_both_sketches(vulkan_task_for: TaskFor, name: str) -> None:
    assert set(space_of(vulkan_task_for(REDUCTIONS[name]), FIXED_VULKAN).sketches) == BY_THREADS


@pytest.mark.parametrize(
    ("payload", "sketches"),
    [
        (row_sum(96, 64), {*BY_THREADS, SUBGROUPS}),
        (row_sum(96, 72), {SUBGROUPS}),
        (softmax(4, 32, 128), {SUBGROUPS}),
        (row_sum(96, 509), BY_THREADS),
        (reduced((96, 128), (1,), kind="f16"), BY_THREADS),
        (sum_of_squares(509), set()),
        (sum_of_bytes(48, 64), set()),
    ],
    ids=["short rows", "long rows", "softmax", "uneven rows", "f16", "one result", "narrow integers"],
)
def test_long_rows_are_left_to_subgroups_and_other_forms_to_the_compiler(
    vulkan_task_for: TaskFor, payload: Payload, sketches: set[str]
) -> None:
    assert set(space_of(vulkan_task_for(payload), FIXED_VULKAN).sketches) == sketches


def test_more_loops_than_a_grid_has_dimensions_are_taken_in_turns(vulkan_task_for: TaskFor) -> None:
    assert space_of(vulkan_task_for(FOUR_LOOPS), FIXED_VULKAN).sketches == ("linear_reduction",)


REFUSED: list[tuple[Payload, str, dict[str, Value], str]] = [
    (
        REDUCTIONS["columns"],
        "reduction",
        {"tile_0": (160, 16)},
        "10 threads per workgroup are no whole subgroups of 8",
    ),
    (
        reduced((8, 16, 64), (1,)),
        "reduction",
        {"tile_0": (8, 8), "tile_1": (64, 16), "step_1": (16,)},
        "512 unrolled vectors are more than 256",
    ),
    (REDUCTIONS["columns"], "linear_reduction", {"tile_0": 4}, "no workgroup gives each thread 1 to 64 of 4 results"),
]


@pytest.mark.parametrize(("payload", "sketch", "values", "rule"), REFUSED, ids=[rule for *_, rule in REFUSED])
def test_rule_refuses(
    vulkan_task_for: TaskFor, payload: Payload, sketch: str, values: dict[str, Value], rule: str
) -> None:
    assert_refused(space_of(vulkan_task_for(payload), FIXED_VULKAN), sketch, values, rule)


def test_a_subgroup_computes_fewer_results_than_it_has_threads(vulkan_task_for: TaskFor) -> None:
    space = space_of(vulkan_task_for(UNEVEN["few_results"]), FIXED_VULKAN)
    trace = space.sample(np.random.default_rng(0), "linear_reduction")
    assert trace.values["threads"] == 8


def test_values_kept_between_reductions_are_a_data_race(
    vulkan_task_for: TaskFor, vulkan_pool: CompilerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A layer norm reads its centred rows twice; rows that are kept lie in memory that all threads write."""
    task = vulkan_task_for(REDUCTIONS["layernorm_30"])
    values: dict[str, Value] = {"tile_0": (64, 1)}
    scripts = [script_with(task, values)]
    monkeypatch.setattr(Reduction, "recomputable", ())
    scripts.append(script_with(task, values))
    results = dict(vulkan_pool.compile(task.source, scripts))
    assert results[0].failure is None
    assert results[1].failure is not None
    assert results[1].failure.kind is FailureClass.DATA_RACE


def script_with(task: Task, values: dict[str, Value]) -> str:
    space = space_of(task, FIXED_VULKAN)
    return space.script(space.run("reduction", Recorder(values, np.random.default_rng(0), OnIllegal.REJECT))[0])


GOLDENS: dict[str, tuple[Payload, str, dict[str, Value]]] = {
    "reduction": (REDUCTIONS["mean_nhwc"], "reduction", {"tile_0": (4, 1), "tile_1": (32, 4), "step_1": (7,)}),
    "linear_reduction": (
        REDUCTIONS["softmax_10"],
        "linear_reduction",
        {"tile_0": 2, "tile_1": 16, "threads": 32, "step_1": (5,), "step_3": (2,), "columns": (5,)},
    ),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_golden_script(vulkan_task_for: TaskFor, name: str, golden: Callable[[str, str], None]) -> None:
    payload, sketch, values = GOLDENS[name]
    assert_golden(golden, f"vulkan/{name}", space_of(vulkan_task_for(payload), FIXED_VULKAN), sketch, values)


@pytest.mark.sweep("nightly")
@pytest.mark.parametrize("name", [*REDUCTIONS, *UNEVEN])
def test_random_candidates_assemble_for_cuda_without_memory_for_reduced_values(
    cuda_task_for: TaskFor, cuda_pool: CompilerPool, name: str
) -> None:
    """What is not kept in registers would be one buffer for all threads of a workgroup (IREE 3.13)."""
    task, rng = cuda_task_for((REDUCTIONS | UNEVEN)[name]), np.random.default_rng(2)
    space = space_of(task, FIXED_CUDA)
    sketches = [sketch for sketch in space.sketches if sketch in BY_THREADS]
    traces = [space.sample(rng, sketch) for sketch in sketches for _ in range(SAMPLES)]
    for _, result in cuda_pool.compile(task.source, [space.script(trace) for trace in traces]):
        ptx = ptx_of(result)
        assert ".shared" not in ptx
        assert ".local" not in ptx
        assembled(ptx, "sm_80")
