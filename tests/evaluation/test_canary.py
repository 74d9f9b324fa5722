"""The canary is compiled and run as candidates are: it fails with the machine, and not with a candidate."""

from __future__ import annotations

import errno
import os
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import iree_cases
import pytest

from mlir_sched.compiler import CompilerPool
from mlir_sched.compiler.worker.main import run
from mlir_sched.compiler.worker_process import JobEnvironmentError
from mlir_sched.errors import Failure, FailureClass
from mlir_sched.evaluation import outage
from mlir_sched.evaluation.canary import Judge
from mlir_sched.evaluation.estimating import CompileAndAssemble
from mlir_sched.evaluation.evaluator import CompileAndRun, Evaluator
from mlir_sched.evaluation.outage import may_be_of_environment
from mlir_sched.processes import child
from mlir_sched.processes.temporary import session_folder
from mlir_sched.runner import CheckOptions, RacingOptions, RunnerOptions
from mlir_sched.tasks.task import Task

OPTIONS = RunnerOptions(racing=RacingOptions(budget_s=0.02), checks=CheckOptions(data_race_calls=0))


@pytest.fixture(scope="module")
def matmul(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return iree_cases.task_of(tmp_path_factory.mktemp("matmul"), iree_cases.MATMUL)


@pytest.fixture(scope="module")
def evaluator(matmul: Task) -> Iterator[CompileAndRun]:
    with CompileAndRun(matmul.flags, OPTIONS, workers=1) as made:
        yield made


def no_more_files(evaluator: CompileAndRun) -> None:
    """Let the compiler process write no byte to any file, as on a full disk."""
    for worker in evaluator._pool._set._idle:
        resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (0, 0))


@pytest.mark.landing
def test_a_compiler_that_cannot_write_is_no_failure_of_the_candidate(
    evaluator: CompileAndRun, matmul: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("mlir_sched.evaluation.outage.time", SimpleNamespace(sleep=pauses.append))
    assert evaluator.canary(matmul) is None
    no_more_files(evaluator)
    ((_, outcome),) = evaluator.evaluate(matmul, [iree_cases.GOOD_SCRIPT], {})
    assert outcome.failure is not None
    assert may_be_of_environment(outcome.failure)
    no_more_files(evaluator)
    assert Judge(evaluator, matmul).of_candidates({0: outcome.failure}) == set()
    assert pauses == [outage.FIRST_PAUSE_S]
    ((_, outcome),) = evaluator.evaluate(matmul, [iree_cases.GOOD_SCRIPT], {})
    assert outcome.timing is not None, "new processes serve again"


@pytest.mark.promise
def test_a_limit_that_the_untuned_code_keeps_is_passed_by_the_candidate(evaluator: CompileAndRun, matmul: Task) -> None:
    for kind in (FailureClass.COMPILE_TIMEOUT, FailureClass.RUN_MEMORY):
        assert Judge(evaluator, matmul).of_candidates({3: Failure(kind, "stopped")}) == {3}


def test_evaluators_have_a_canary() -> None:
    for kind in (CompileAndRun, CompileAndAssemble):
        assert kind.canary is not Evaluator.canary
        assert kind.renew is not Evaluator.renew


@pytest.mark.promise
def test_a_pool_without_a_process_leaves_nothing_behind_and_serves_again(
    matmul: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    popen = child.subprocess.Popen  # type: ignore[attr-defined]

    def no_memory(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    with CompilerPool(matmul.flags, workers=1) as pool:
        assert next(pool.compile(matmul.source, [None]))[1].failure is None
        before = len(list(Path("/proc/self/fd").iterdir())), len(list(session_folder().iterdir()))
        os.kill(pool._set._idle[0].pid, signal.SIGKILL)
        while pool._set._idle[0].is_alive():
            time.sleep(0.01)
        monkeypatch.setattr(child.subprocess, "Popen", no_memory)  # type: ignore[attr-defined]
        with pytest.raises(OSError, match="allocate memory"):
            list(pool.compile(matmul.source, [None]))
        monkeypatch.setattr(child.subprocess, "Popen", popen)  # type: ignore[attr-defined]
        assert next(pool.compile(matmul.source, [None]))[1].failure is None
        assert (len(list(Path("/proc/self/fd").iterdir())), len(list(session_folder().iterdir()))) == before


def test_a_job_without_space_or_memory_blames_the_machine(tmp_path: Path) -> None:
    for job, arguments in (("os:mkdir", (str(tmp_path),)), ("os:listdir", ("/no/such/folder",))):
        done, error = run(job, arguments)
        assert not done
        assert isinstance(error, JobEnvironmentError)


@pytest.mark.promise
def test_a_machine_on_which_the_untuned_code_does_not_run_is_no_failure_of_the_candidate(
    evaluator: CompileAndRun, matmul: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = Failure(FailureClass.RUN_TIMEOUT, "stopped after 180 s")
    monkeypatch.setattr("mlir_sched.evaluation.outage.time", SimpleNamespace(sleep=lambda _: None))
    found = iter([stopped, None])
    monkeypatch.setattr(evaluator._runner, "check", lambda *_: [next(found)])
    assert Judge(evaluator, matmul).of_candidates({0: stopped}) == set()
    assert list(found) == [], "it is asked until it runs"
