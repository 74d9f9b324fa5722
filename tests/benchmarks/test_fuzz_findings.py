"""Programs in which random programs found a fault: all of their dispatches have scripts that apply and are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from folders import DATA

from mlir_sched.compiler import CompilerPool
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks import extract
from mlir_sched.tasks.task import Task
from mlir_sched.testing import check_candidates

pytestmark = pytest.mark.landing

FOUND = sorted((DATA / "fuzz").glob("*.mlir"))
DRAWS = 3
"""Random candidates per dispatch."""
NATIVE_F16 = "+avx512fp16"
"""The feature of x86 processors without which IREE 3.13 links no reduction by maxima of f16, which calls ``fmaxf``."""


def not_linked(task: Task, here: Target, pool: CompilerPool) -> bool:
    """Say whether this is code that IREE does not link here, nor any script, which combines lanes by the same call."""
    ((_, untuned),) = pool.compile(task.source, [None])
    failed = untuned.failure is not None and "failed to link" in untuned.failure.message
    return failed and NATIVE_F16 not in here.description


@pytest.mark.parametrize("path", FOUND, ids=[path.stem for path in FOUND])
def test_every_dispatch_has_scripts_that_are_right(path: Path, here: Target) -> None:
    checked = list[Task]()
    with CompilerPool(here.flags) as pool, Runner(RunnerOptions()) as runner:
        for task in extract(path, here).tasks:
            assert task.dispatch is not None, task.not_tunable
            space, rng = DesignSpace(Space.default(here), task.dispatch, here), np.random.default_rng(0)
            traces = list({space.sample(rng): None for _ in range(DRAWS)})
            if not_linked(task, here, pool):
                continue
            assert check_candidates(task, space, traces, pool, runner) == [None] * len(traces)
            checked.append(task)
    assert checked
