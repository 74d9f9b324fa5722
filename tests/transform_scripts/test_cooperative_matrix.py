"""Products on cooperative matrices: compiled for devices that have them and are not there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from contraction_payloads import matmul, mixed_contraction
from fixed_targets import assert_golden, assert_refused, space_of
from payload_text import Payload
from spirv import opcodes

from mlir_sched.compiler import CompilerPool
from mlir_sched.sampling import Value
from mlir_sched.targets import absent_target
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.trace import OnIllegal, Recorder

TaskFor = Callable[[str | Payload], Task]
SKETCH = "cooperative_matrix"
MULTIPLY_ADD = 4459
"""``OpCooperativeMatrixMulAddKHR``. Source: SPIR-V, SPV_KHR_cooperative_matrix."""
PRODUCT = matmul(128, 256, 512, "f16", "f32")
PAYLOADS: dict[str, Payload] = {
    "sums of f32": PRODUCT,
    "sums of f16": matmul(128, 256, 512, "f16"),
    "batch": mixed_contraction({"b": 3, "m": 64, "n": 128, "k": 64}, ("bmk", "bkn", "bmn"), "f16"),
    "transposed": mixed_contraction({"m": 64, "n": 128, "k": 64}, ("mk", "nk", "mn"), "f16"),
    "epilogue": mixed_contraction({"m": 256, "n": 256, "k": 64}, ("mk", "kn", "mn"), "f16", narrow=True),
}
VALUES: dict[str, Value] = {
    "tile_rows": (64, 32),
    "tile_columns": (128, 64),
    "reduction_step": 32,
    "pipeline": "1, early",
}
SAMPLES = 4


@pytest.fixture(scope="module", params=["rdna3", "ampere"])
def target(request: pytest.FixtureRequest) -> Target:
    return absent_target(f"vulkan:{request.param}")


@pytest.fixture(scope="module")
def task_on(payload_tasks: Callable[[Target], TaskFor], target: Target) -> TaskFor:
    return payload_tasks(target)


@pytest.mark.sweep("nightly")
@pytest.mark.parametrize("name", PAYLOADS)
def test_random_candidates_multiply_cooperative_matrices(
    name: str, target: Target, task_on: TaskFor, pool: CompilerPool
) -> None:
    task, rng = task_on(PAYLOADS[name]), np.random.default_rng(0)
    space = space_of(task, target)
    traces = [space.sample(rng, SKETCH) for _ in range(SAMPLES)]
    for index, result in pool.compile(task.source, list(map(space.script, traces))):
        assert result.vmfb is not None, (traces[index].values, result.failure)
        assert opcodes(result.vmfb)[MULTIPLY_ADD] > 0


def test_a_subgroup_computes_its_tile(target: Target, task_on: TaskFor, pool: CompilerPool) -> None:
    """2 x 4 results times 2 parts of the reduction: in the loop, and once more for the step that is copied ahead."""
    task = task_on(PRODUCT)
    space = space_of(task, target)
    trace = space.run(SKETCH, Recorder(VALUES, on_illegal=OnIllegal.REJECT))[0]
    ((_, result),) = pool.compile(task.source, [space.script(trace)])
    assert result.vmfb is not None, result.failure
    assert opcodes(result.vmfb)[MULTIPLY_ADD] == 2 * (2 * 4 * 2)


@pytest.mark.parametrize(
    "payload",
    [
        matmul(128, 256, 512),
        matmul(128, 256, 40, "f16", "f32"),
        matmul(128, 24, 512, "f16", "f32"),
        mixed_contraction({"m": 128, "n": 256, "k": 512}, ("mk", "kn", "mn"), "bf16"),
    ],
    ids=["f32", "half a step", "half a tile of columns", "bf16"],
)
def test_other_products_have_no_such_sketch(payload: Payload, target: Target, task_on: TaskFor) -> None:
    assert SKETCH not in space_of(task_on(payload), target).sketches


def test_other_devices_have_no_such_sketch(payload_tasks: Callable[[Target], TaskFor]) -> None:
    older = absent_target("vulkan:pascal")
    assert SKETCH not in space_of(payload_tasks(older)(PRODUCT), older).sketches


REFUSED: dict[str, tuple[str, dict[str, Value], str]] = {
    "too many threads": (
        "sums of f32",
        {**VALUES, "tile_rows": (128, 16), "tile_columns": (256, 16)},
        "4096 threads per workgroup > 1024",
    ),
    "too many results": (
        "sums of f32",
        {**VALUES, "tile_rows": (128, 128), "tile_columns": (64, 64)},
        "256 results per thread",
    ),
    "half a matrix": ("sums of f32", {**VALUES, "tile_columns": (64, 8)}, "tile_columns"),
    "more steps ahead than there are": ("epilogue", {**VALUES, "pipeline": "2, early"}, "pipeline"),
    "results that fill the shared memory": (
        "epilogue",
        {**VALUES, "tile_rows": (256, 64), "tile_columns": (256, 64)},
        "does not fit shared memory",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_rule_refuses(name: str, target: Target, task_on: TaskFor) -> None:
    payload, values, rule = REFUSED[name]
    assert_refused(space_of(task_on(PAYLOADS[payload]), target), SKETCH, values, rule)


def test_golden_script(target: Target, task_on: TaskFor, golden: Callable[[str, str], None]) -> None:
    assert_golden(golden, "vulkan/cooperative_matrix", space_of(task_on(PRODUCT), target), SKETCH, VALUES)
