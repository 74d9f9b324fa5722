"""Vulkan devices that need not be there: candidates within their limits compile, also for the targets of real GPUs."""

from __future__ import annotations

import numpy as np
import pytest
from fixed_targets import space_of
from payloads import PAYLOADS

from mlir_sched.compiler import CompilerPool
from mlir_sched.targets import absent_target
from mlir_sched.targets.devices.vulkan_devices import KNOWN_TARGETS
from mlir_sched.targets.target import Target
from mlir_sched.testing import tasks_of

NAMES = ("matmul", "matmul_uneven", "vecmat", "softmax", "row_sum", "elementwise_chain", "transpose")


@pytest.fixture(scope="module", params=[known.name for known in KNOWN_TARGETS])
def target(request: pytest.FixtureRequest) -> Target:
    return absent_target(f"vulkan:{request.param}")


@pytest.mark.sweep("nightly")
@pytest.mark.parametrize("name", NAMES)
def test_random_candidates_compile_for_the_targets_of_real_gpus(name: str, target: Target, pool: CompilerPool) -> None:
    rng = np.random.default_rng(0)
    (task,) = tasks_of(PAYLOADS[name].text, target, PAYLOADS[name].flags)
    space = space_of(task, target)
    traces = [space.sample(rng, sketch) for sketch in space.sketches]
    assert traces
    for index, result in pool.compile(task.source, [None, *map(space.script, traces)]):
        assert result.vmfb is not None, (index, result.failure)
