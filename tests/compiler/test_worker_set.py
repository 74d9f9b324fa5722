"""The compiler processes of a run, however many sets of flags it compiles with."""

from __future__ import annotations

from pathlib import Path

import iree_cases as cases
import psutil
import pytest

from mlir_sched.compiler import CompilerPool, WorkerSet
from mlir_sched.evaluation.estimating import CompileAndAssemble
from mlir_sched.evaluation.evaluator import CompileAndRun
from mlir_sched.targets import detect_target

FAST, SMALL, PLAIN = ("-O3",), ("-Os",), ()


class Idle:
    """A worker without a process; all that were started and did not end are in ``alive``."""

    alive: list[tuple[str, ...]]
    pid = 0

    def __init__(self, flags: tuple[str, ...]) -> None:
        self.flags = flags
        self.alive.append(flags)

    def is_alive(self) -> bool:
        return self.flags in self.alive

    def kill(self) -> None:
        self.alive.remove(self.flags)


@pytest.fixture
def alive(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Replace the processes; return the flags of those that live."""
    Idle.alive = []
    monkeypatch.setattr("mlir_sched.compiler.worker_set.Worker", Idle)
    return Idle.alive


def used(workers: WorkerSet, *flags: tuple[str, ...]) -> None:
    """Let workers do one job each at the same time."""
    lent = [workers.borrow(each) for each in flags]
    for worker in lent:
        assert worker is not None
        workers.give_back(worker)


def test_a_worker_is_used_again_for_its_flags(alive: list[tuple[str, ...]]) -> None:
    workers = WorkerSet(2)
    used(workers, FAST)
    used(workers, FAST)
    assert alive == [FAST]


def test_the_worker_that_was_used_least_recently_makes_place_for_other_flags(alive: list[tuple[str, ...]]) -> None:
    workers = WorkerSet(2)
    used(workers, FAST, SMALL)
    used(workers, FAST)
    used(workers, PLAIN)
    assert sorted(alive) == [PLAIN, FAST]
    used(workers, SMALL, SMALL)
    assert alive == [SMALL, SMALL]


def test_no_further_worker_is_lent_while_all_are_at_work(alive: list[tuple[str, ...]]) -> None:
    workers = WorkerSet(1)
    worker = workers.borrow(FAST)
    assert worker is not None
    assert workers.borrow(FAST) is workers.borrow(SMALL) is None
    workers.end(worker)
    assert workers.borrow(SMALL) is not None
    workers.close()
    assert alive == []


@pytest.mark.promise
def test_pools_with_other_flags_take_turns_with_the_same_processes(tmp_path: Path) -> None:
    task, own = cases.task_of(tmp_path, cases.MATMUL), psutil.Process()
    before = {child.pid for child in own.children()}
    with WorkerSet(1) as workers:
        for flags in (cases.FLAGS, (*cases.FLAGS, "--iree-opt-level=O3"), cases.FLAGS):
            with CompilerPool(flags, shared=workers) as pool:
                ((_, result),) = pool.compile(task.source, [None])
            assert result.failure is None
            assert len({child.pid for child in own.children()} - before) == 1
    assert {child.pid for child in own.children()} == before


@pytest.mark.promise
def test_evaluators_with_other_flags_have_the_processes_of_one_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlir_sched.evaluation.estimating.GpuTimes", lambda _: None)
    workers, target = WorkerSet(1), detect_target("llvm-cpu", 1)
    made = (
        CompileAndRun(FAST, shared=workers),
        CompileAndRun(SMALL, shared=workers),
        CompileAndAssemble(PLAIN, target, shared=workers),
    )
    assert all(each._pool._set is workers for each in made)


@pytest.mark.promise
def test_renewed_pools_have_new_processes_whether_they_share_them_or_not(tmp_path: Path) -> None:
    task, own = cases.task_of(tmp_path, cases.MATMUL), psutil.Process()
    before = {child.pid for child in own.children()}
    with WorkerSet(1) as workers, CompilerPool(cases.FLAGS, shared=workers) as pool:
        for _ in range(2):
            ((_, result),) = pool.compile(task.source, [None])
            assert result.failure is None
            pool.renew()
            assert {child.pid for child in own.children()} == before
