"""Candidates that are assembled and estimated: what their code is refused for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contraction_payloads import matmul
from fixed_targets import FIXED_CUDA, space_of
from payload_text import Payload

from mlir_sched.compiler.pool import CompileRequest
from mlir_sched.errors import FailureClass, UserError
from mlir_sched.evaluation import gpu_times
from mlir_sched.evaluation.estimating import CompileAndAssemble
from mlir_sched.evaluation.evaluator import CompileAndRun
from mlir_sched.evaluation.gpu_times import GpuTimes
from mlir_sched.gpu_model.ptxas import Resources
from mlir_sched.runner import RunnerOptions
from mlir_sched.targets import absent_target
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task

pytestmark = pytest.mark.promise


@cache
def target() -> Target:
    """A device that need not be there, with limits that do not depend on a driver."""
    return replace(absent_target("cuda:sm_80"), gpu=FIXED_CUDA.gpu)


@pytest.fixture(scope="module")
def task(cuda_task_for: Callable[[str | Payload], Task]) -> Task:
    return cuda_task_for(matmul(64, 64, 64))


@pytest.fixture
def evaluator(task: Task, monkeypatch: pytest.MonkeyPatch) -> Iterator[CompileAndAssemble]:
    """Yield an evaluator for which every script is compiled to the untuned code."""
    with CompileAndAssemble(task.flags, target(), workers=1) as made:
        compile_all = made._pool.compile_all

        def without_scripts(candidates: Sequence[CompileRequest]) -> Any:
            return compile_all([replace(candidate, script=None) for candidate in candidates])

        monkeypatch.setattr(made._pool, "compile_all", without_scripts)
        yield made


def test_code_without_what_its_script_asks_for_is_a_failure(task: Task, evaluator: CompileAndAssemble) -> None:
    outcomes = dict(evaluator.evaluate(task, ["transform.yield", "transform.iree.create_async_groups %0"], {}))
    assert outcomes[0].timing is not None
    failure = outcomes[1].failure
    assert failure is not None
    assert failure.kind == FailureClass.ASSEMBLY_ERROR
    assert failure.message == "the script asks for cp.async, and its code has none"


def test_spilled_registers_are_a_failure_of_a_script_and_not_of_the_untuned_code(
    task: Task, evaluator: CompileAndAssemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_times, "assemble", lambda *_: Resources(255, 64))
    assert evaluator.untuned(task).timing is not None
    ((_, outcome),) = evaluator.evaluate(task, ["transform.yield"], {})
    assert outcome.failure is not None
    assert outcome.failure.message == "64 bytes of registers are spilled to memory"


def a_script(task: Task) -> str:
    """Return the script of a random candidate."""
    space = space_of(task, target())
    return space.script(space.sample(np.random.default_rng(0)))


def test_a_device_that_is_there_estimates_scripts_and_keeps_their_code(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = [a_script(task), "no script"]
    with CompileAndRun(
        task.flags, RunnerOptions.for_device(FIXED_CUDA.driver), workers=1, model=GpuTimes(target())
    ) as made:
        seconds, unknown = made.estimates(task, scripts)
        assert unknown is None
        with CompileAndAssemble(task.flags, target(), workers=1) as assembling:
            (first, _) = (outcome for _, outcome in sorted(assembling.evaluate(task, scripts, {}), key=itemgetter(0)))
        assert first.timing is not None
        assert seconds == first.timing.median_s
        compile_all, further = made._pool.compile_all, list[str | None]()

        def noted(candidates: Sequence[CompileRequest]) -> Any:
            further.extend(candidate.script for candidate in candidates)
            return compile_all(candidates)

        monkeypatch.setattr(made._pool, "compile_all", noted)
        compiled = dict(made._compiled(task, scripts))
    assert compiled[0].vmfb
    assert further == [None], "only the untuned code, which candidates are measured with"


def test_code_that_was_kept_for_a_task_is_not_taken_for_that_of_another(task: Task) -> None:
    script = a_script(task)
    with CompileAndRun(
        task.flags, RunnerOptions.for_device(FIXED_CUDA.driver), workers=1, model=GpuTimes(target())
    ) as made:
        made.estimates(task, [script])
        ((_, result),) = made._compiled(replace(task, key="another", source="no program"), [script])
    assert result.failure is not None


def test_there_are_no_estimates_without_a_model(task: Task) -> None:
    with CompileAndRun(task.flags, RunnerOptions.for_device(FIXED_CUDA.driver), workers=1) as made:
        assert made.estimates(task, [a_script(task)]) == [None]


def test_only_targets_whose_code_is_assembled_have_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    assert GpuTimes.of(target()) is not None
    assert GpuTimes.of(replace(target(), assembler="")) is None

    def missing() -> Path:
        raise UserError("there is none")

    monkeypatch.setattr(gpu_times, "find_assembler", missing)
    assert GpuTimes.of(target()) is None
