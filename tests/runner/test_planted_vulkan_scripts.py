"""Scripts that IREE compiles for Vulkan in silence, and that a device computes wrongly or refuses: found untimed."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from contraction_payloads import matmul
from fixed_targets import FIXED_VULKAN
from payload_text import Payload
from vulkan import require_vulkan

from mlir_sched.compiler import CompilerPool
from mlir_sched.errors import FailureClass
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.runner.checks.numeric_checks import checks_for_dispatch
from mlir_sched.runner.program import program_of_task
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.clock import EVENTS
from mlir_sched.targets.target import Driver
from mlir_sched.tasks.task import Task
from mlir_sched.trace import OnIllegal, Recorder

pytestmark = pytest.mark.landing

TILES: dict[str, Value] = {"tile_0": (32, 8), "tile_1": (32, 4), "reduction_step": (4,)}


def tiles_of_other_threads(script: str) -> str:
    """Give a workgroup more tiles of threads than threads; the tiles do not divide the extents, either."""
    return re.sub(r"tile_sizes = .*?\]\]", "tile_sizes = [[16, 256, 0], [7, 5, 0], [0, 0, 3]]", script)


def subgroups_of_another_device(script: str) -> str:
    return script.replace("subgroup_size = 8", "subgroup_size = 64")


@pytest.mark.parametrize(
    ("sketch", "plant", "kind", "message"),
    [
        ("lowering_config", tiles_of_other_threads, FailureClass.WRONG_RESULT, "elements"),
        ("contraction.threads", subgroups_of_another_device, FailureClass.RUN_ERROR, "requires subgroup size 64"),
    ],
)
def test_what_compiles_and_is_wrong_is_found_before_it_is_timed(
    vulkan_task_for: Callable[[str | Payload], Task],
    sketch: str,
    plant: Callable[[str], str],
    kind: FailureClass,
    message: str,
) -> None:
    require_vulkan()
    task = vulkan_task_for(matmul(256, 256, 256))
    assert task.dispatch is not None
    space = DesignSpace(Space.default(FIXED_VULKAN), task.dispatch, FIXED_VULKAN)
    script = space.script(space.run(sketch, Recorder(TILES, on_illegal=OnIllegal.REJECT))[0])
    planted = plant(script)
    assert planted != script
    with CompilerPool(task.flags, workers=1) as pool:
        compiled = dict(pool.compile(task.source, [None, script, planted]))
    programs = {index: program_of_task(task, result.vmfb) for index, result in compiled.items() if result.vmfb}
    assert len(programs) == 3, [result.failure for result in compiled.values()]
    with Runner(RunnerOptions.for_device(Driver("vulkan", EVENTS))) as runner:
        right, wrong = runner.check(programs[0], [programs[1], programs[2]], checks_for_dispatch(task.dispatch))
    assert right is None
    assert wrong is not None
    assert (wrong.kind, message in wrong.message) == (kind, True), wrong
