"""Candidates that are assembled and estimated: what their code is refused for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from fixed_targets import FIXED_CUDA
from payloads import Payload, matmul

from mlir_sched.assembly.ptxas import Resources
from mlir_sched.errors import FailureClass
from mlir_sched.targets import absent_target
from mlir_sched.tasks.task import Task
from mlir_sched.tuning import estimating
from mlir_sched.tuning.estimating import CompileAndAssemble


@pytest.fixture(scope="module")
def task(cuda_task_for: Callable[[str | Payload], Task]) -> Task:
    return cuda_task_for(matmul(64, 64, 64))


@pytest.fixture
def evaluator(task: Task, monkeypatch: pytest.MonkeyPatch) -> Iterator[CompileAndAssemble]:
    """Yield an evaluator for which every script is compiled to the untuned code."""
    target = replace(absent_target("cuda:sm_80"), gpu=FIXED_CUDA.gpu)
    with CompileAndAssemble(task.flags, target, workers=1) as made:
        compiled = made._pool.compile
        monkeypatch.setattr(made._pool, "compile", lambda source, scripts: compiled(source, [None] * len(scripts)))
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
    monkeypatch.setattr(estimating, "assemble", lambda *_: Resources(255, 64))
    assert evaluator.untuned(task).timing is not None
    ((_, outcome),) = evaluator.evaluate(task, ["transform.yield"], {})
    assert outcome.failure is not None
    assert outcome.failure.message == "64 bytes of registers are spilled to memory"
