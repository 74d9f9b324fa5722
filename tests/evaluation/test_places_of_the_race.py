"""What a round of scripts measures, on this machine: all of the fastest, and of slow ones that they are slow."""

from __future__ import annotations

from collections.abc import Sequence

import iree_cases
import numpy as np
import pytest

from mlir_sched.evaluation.compiled_code import CompiledCode
from mlir_sched.evaluation.evaluator import CompileAndRun
from mlir_sched.outcome import Outcome, Verdict
from mlir_sched.runner import RunnerOptions
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task

pytestmark = pytest.mark.alone


@pytest.fixture(scope="module")
def matmul(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return iree_cases.task_of(tmp_path_factory.mktemp("matmul"), iree_cases.MATMUL)


@pytest.fixture(scope="module")
def scripts(matmul: Task, here: Target) -> Sequence[str]:
    assert matmul.dispatch is not None
    space, rng = DesignSpace(Space.default(here), matmul.dispatch, here), np.random.default_rng(0)
    return [space.script(space.sample(rng)) for _ in range(12)]


def outcomes(matmul: Task, scripts: Sequence[str], code: CompiledCode) -> dict[str, Outcome]:
    """Return the outcomes of two rounds, by the hash of the code."""
    known: dict[str, Outcome] = {}
    with CompileAndRun(matmul.flags, RunnerOptions(), code=code) as evaluator:
        for some in (scripts[:6], scripts[6:]):
            found = [outcome for _, outcome in evaluator.evaluate(matmul, some, known)]
            known |= {each.binary_hash: each for each in found if each.timing is not None}
    return known


def test_slow_scripts_are_not_checked_and_the_fastest_are_right(matmul: Task, scripts: Sequence[str]) -> None:
    places = 2
    few = outcomes(matmul, scripts, CompiledCode(places))
    right = sorted((each.valid.ratio for each in few.values() if each.valid is not None), reverse=True)
    slow = [each.timing for each in few.values() if each.verdict is Verdict.NOT_CHECKED]
    assert len(right) >= places
    assert slow, "random scripts of a product are not all alike"
    for timing in slow:
        assert timing is not None
        assert timing.ratio < right[places - 1]
    every = outcomes(matmul, scripts, CompiledCode())
    assert every.keys() == few.keys()
    assert all(each.verdict is Verdict.RIGHT for each in every.values()), "where all are of the same use"
