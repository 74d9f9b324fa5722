"""What the machine does to candidates is not theirs: it is tried again, stored nowhere, and too much of it stops."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from planted_outages import CRASH, Planted
from replayed_run import METHOD, TARGET, matmul_dispatch, program_search, searched, task_of

from mlir_sched.database import RecordStore
from mlir_sched.database.record import Record, measuring_context
from mlir_sched.errors import (
    EnvironmentFailureError,
    EnvironmentStopError,
    Failure,
    FailureClass,
    FailureOrigin,
)
from mlir_sched.evaluation import outage
from mlir_sched.evaluation.evaluator import Evaluator, UntunedError
from mlir_sched.outcome import Outcome
from mlir_sched.runner import BaselineError
from mlir_sched.search import RandomSearch
from mlir_sched.tasks.task import Task
from mlir_sched.tuning.callbacks import Interruption
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.program_search import ProgramSearch
from mlir_sched.tuning.search_method import SearchMethod

TRIALS = 24
METHODS = {"evolutionary": METHOD, "random": SearchMethod(RandomSearch)}
OPTIONS = TuneOptions(trials=TRIALS, round_size=8, seed=3)
SHAPES = {"good": (64, 96, 32), "bad": (128, 64, 48)}
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
STALLED = Failure(FailureClass.RUN_TIMEOUT, "stopped after 180 s", FailureOrigin.ENVIRONMENT)
FULL_DISK = Failure(FailureClass.COMPILE_ERROR, "cannot write /tmp/a.o: No space left on device")


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the pauses that are made, of which none takes any time."""
    made: list[float] = []
    monkeypatch.setattr("mlir_sched.evaluation.outage.time.sleep", made.append)
    monkeypatch.setattr(outage, "shortage", lambda: "")
    monkeypatch.setattr("mlir_sched.evaluation.canary.shortage", lambda: "")
    return made


def run(folder: Path, evaluator: Evaluator, *, strategy: str = "evolutionary") -> ProgramSearch:
    """Return a search over two tasks, which goes on from the folder's store and learns by a model."""
    with RecordStore.open(folder / "records.sqlite") as store:
        return searched(search_in(store, strategy), evaluator)


def search_in(store: RecordStore, strategy: str = "evolutionary") -> ProgramSearch:
    tasks = [task_of(name, matmul_dispatch(*shape)) for name, shape in SHAPES.items()]
    return program_search(OPTIONS, store, tasks, method=METHODS[strategy])


def records_of(folder: Path) -> list[Record]:
    with RecordStore.open(folder / "records.sqlite") as store:
        return [r for task in store.tasks() for r in store.records(task.key, measuring_context(TARGET))]


def essence(folder: Path) -> set[tuple[object, ...]]:
    return {(r.key, r.trace, r.script, r.outcome, r.round) for r in records_of(folder)}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], set[tuple[object, ...]]]:
    """Return the scripts of a run that nothing disturbs, in order, and what it stores."""
    folder, evaluator = tmp_path_factory.mktemp("undisturbed"), Planted()
    assert run(folder, evaluator).tried == TRIALS
    return evaluator.asked, essence(folder)


@pytest.mark.parametrize("fault", [CRASH, FULL_DISK, EnvironmentFailureError("no process starts")])
def test_a_run_that_an_outage_stopped_goes_on_as_if_there_had_been_none(
    fault: Failure | Exception, undisturbed: tuple[list[str], set[tuple[object, ...]]], tmp_path: Path
) -> None:
    scripts, stored = undisturbed
    broken = Planted(lambda number, _: fault if number > 11 else None, lambda _: CRASH)
    with pytest.raises(EnvironmentStopError, match="the same command goes on"):
        run(tmp_path, broken)
    assert broken.asked[:11] == scripts[:11]
    assert all(record.outcome.failure is None for record in records_of(tmp_path))
    assert len(records_of(tmp_path)) == 11 + len(SHAPES)
    resumed = Planted()
    assert run(tmp_path, resumed).tried == TRIALS
    assert [*broken.asked[:11], *resumed.asked] == scripts
    assert essence(tmp_path) == stored


@pytest.mark.parametrize("fault", [CRASH, STALLED, FULL])
def test_what_a_short_outage_hits_is_tried_again_in_its_round(
    fault: Failure | Exception,
    undisturbed: tuple[list[str], set[tuple[object, ...]]],
    tmp_path: Path,
    pauses: list[float],
) -> None:
    scripts, stored = undisturbed
    evaluator = Planted(lambda number, _: fault if number == 12 else None, lambda count: CRASH if count < 4 else None)
    assert run(tmp_path, evaluator).tried == TRIALS
    assert essence(tmp_path) == stored
    assert set(evaluator.asked) == set(scripts)
    assert pauses[:2] == [0.5, 1.0] or pauses == [0.5]
    assert evaluator.renewed >= 1, "what follows has new processes"


def test_pauses_grow_to_a_bound_and_eight_failures_in_a_row_stop(tmp_path: Path, pauses: list[float]) -> None:
    broken = Planted(lambda *_: FULL, lambda _: FULL)
    with pytest.raises(EnvironmentStopError, match=r"failed 8 times in a row .*No space left"):
        run(tmp_path, broken)
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]


def test_a_failure_that_the_untuned_code_does_not_share_is_the_candidates(tmp_path: Path, pauses: list[float]) -> None:
    evaluator = Planted(lambda number, _: CRASH if number in (2, 3) else None)
    run(tmp_path, evaluator)
    failed = [record.outcome.failure for record in records_of(tmp_path) if record.outcome.failure]
    assert failed == [CRASH, CRASH]
    assert len(evaluator.asked) == TRIALS, "it is not tried again"
    assert evaluator.canaries == 1, "there is one canary for the round"
    assert not pauses


def test_what_looks_like_the_machines_twice_while_the_machine_serves_is_the_candidates(tmp_path: Path) -> None:
    seen: list[str] = []

    class Large(Planted):
        """Its third script needs more space than there ever is."""

        def evaluate(
            self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
        ) -> Iterator[tuple[int, Outcome]]:
            for index, outcome in super().evaluate(task, scripts, known):
                if len(self.asked) == 3:
                    seen.append(self.asked[2])
                yield index, Outcome(None, FULL_DISK) if scripts[index] in seen else outcome

    evaluator = Large()
    assert run(tmp_path, evaluator).tried == TRIALS
    assert evaluator.asked.count(seen[0]) == 2
    assert [r.outcome.failure for r in records_of(tmp_path) if r.script == seen[0]] == [FULL_DISK]


def test_an_evaluator_without_a_canary_tells_what_is_certain(tmp_path: Path) -> None:
    class Blind(Planted):
        """Has no canary."""

        canary = Evaluator.canary

    run(tmp_path, Blind(lambda number, _: {4: CRASH, 5: STALLED}.get(number)))
    assert [r.outcome.failure for r in records_of(tmp_path) if r.outcome.failure] == [CRASH]


@pytest.mark.parametrize("error", [BaselineError("stopped after 120 s"), UntunedError("it crashed")])
def test_untuned_code_that_fails_once_costs_nothing(
    error: Exception, undisturbed: tuple[list[str], set[tuple[object, ...]]], tmp_path: Path
) -> None:
    evaluator = Planted(lambda number, _: error if number == 13 else None)
    assert run(tmp_path, evaluator).tried == TRIALS
    assert essence(tmp_path) == undisturbed[1]
    assert evaluator.renewed == 1, "it is tried again in a new process"


@pytest.mark.parametrize("after", [0, 5])
def test_untuned_code_that_fails_twice_stops_its_dispatch_and_blames_no_candidate(after: int, tmp_path: Path) -> None:
    measured: list[int] = []

    def fault(number: int, task: Task) -> Exception | None:
        if task.name == "bad":
            measured.append(number)
        return BaselineError("stopped after 120 s") if task.name == "bad" and len(measured) > after else None

    program = run(tmp_path, Planted(fault), strategy="random")
    by_name = {search.task.name: search for search in program.searches}
    assert by_name["bad"].stopped == "the untuned code of bad failed: stopped after 120 s"
    assert (by_name["bad"].tried, by_name["good"].tried) == (after, TRIALS - after)
    assert all(record.outcome.failure is None for record in records_of(tmp_path))
    resumed = run(tmp_path, Planted(), strategy="random")
    assert not any(search.stopped for search in resumed.searches)
    assert sum(search.measured for search in resumed.searches) > 0, "a resumed run tries again"


@pytest.mark.parametrize(
    ("error", "again"),
    [(UntunedError("it crashed"), True), (FULL, True), (UntunedError("IREE refuses it", is_lasting=True), False)],
)
def test_untuned_code_is_tried_again_unless_it_is_to_blame(error: Exception, again: bool, tmp_path: Path) -> None:
    class Untuned(Planted):
        """Its untuned code raises the errors of a list, one per call."""

        def __init__(self, *errors: Exception) -> None:
            super().__init__()
            self.errors, self.calls = list(errors), 0

        def untuned(self, task: Task, following: Sequence[Task] = ()) -> Outcome:
            self.calls += 1
            if self.errors:
                raise self.errors.pop(0)
            return super().untuned(task, following)

    evaluator = Untuned(error)
    assert list(run(tmp_path, evaluator, strategy="random").untunable.values()) == ([] if again else [str(error)])
    assert evaluator.calls == len(SHAPES) + again


def test_a_stopped_search_keeps_its_clock_and_says_where_nothing_could_be_emitted() -> None:
    saved, waits = list[bool](), list[float]()

    class Clock:
        class store:  # noqa: N801
            wait_for_locks = staticmethod(waits.append)

        def save(self) -> None:
            saved.append(True)

    with Interruption(Clock()) as interruption:  # type: ignore[arg-type]
        raise EnvironmentStopError("this machine failed 8 times in a row")
    assert interruption.stopped == "this machine failed 8 times in a row"
    assert (interruption.happened, interruption.early) == (False, True)
    assert saved
    assert waits == [0.0], "from then on the run waits for nobody"
    nothing = pytest.raises(EnvironmentStopError, match="8 times in a row; nothing could be emitted: no process")
    with nothing, interruption.emitting():
        raise EnvironmentFailureError("no process")
    with pytest.raises(ZeroDivisionError), interruption.emitting():
        raise ZeroDivisionError
    with Interruption(Clock()) as short:  # type: ignore[arg-type]
        raise FULL
    assert "No space left" in short.stopped
    with pytest.raises(FileNotFoundError), Interruption(Clock()):  # type: ignore[arg-type]
        raise FileNotFoundError(errno.ENOENT, "a mistake of ours")


class Holding(Planted):
    """Another connection takes the lock of the store before the n-th candidate is measured."""

    def __init__(self, path: Path, number: int) -> None:
        super().__init__(self._hold)
        self.path, self.number = path, number
        self.holder: sqlite3.Connection | None = None
        self.asked_at_release: int | None = None

    def _hold(self, number: int, task: Task) -> None:
        del task
        if number == self.number:
            self.holder = sqlite3.connect(self.path, isolation_level=None)
            self.holder.execute("BEGIN IMMEDIATE")

    def release(self, text: str) -> None:
        assert "waiting for the record store" in text
        assert self.holder is not None
        self.holder.execute("ROLLBACK")
        self.asked_at_release = len(self.asked)


def test_a_round_is_measured_whole_while_another_process_holds_the_store(
    undisturbed: tuple[list[str], set[tuple[object, ...]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlir_sched.database.engine.NOTE_S", 0.0)
    monkeypatch.setattr("mlir_sched.database.engine.ATTEMPT_S", 0.02)
    evaluator = Holding(tmp_path / "records.sqlite", 10)
    with RecordStore.open(evaluator.path) as store:
        store.wait_for_locks(60.0, evaluator.release)
        searched(search_in(store), evaluator)
    assert evaluator.asked == undisturbed[0]
    assert evaluator.asked_at_release is not None
    assert evaluator.asked_at_release > 10
    assert essence(tmp_path) == undisturbed[1]


def test_a_store_that_is_held_for_too_long_stops_the_search_and_gets_the_outcomes_at_the_end(
    undisturbed: tuple[list[str], set[tuple[object, ...]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlir_sched.database.engine.ATTEMPT_S", 0.02)
    evaluator = Holding(tmp_path / "records.sqlite", 10)
    with RecordStore.open(evaluator.path) as store:
        store.wait_for_locks(0.0)
        search = search_in(store)
        with Interruption(search.run.clock) as interruption:
            searched(search, evaluator)
        assert "another process holds it" in interruption.stopped
        assert evaluator.holder is not None
        evaluator.holder.execute("ROLLBACK")
    assert len(records_of(tmp_path)) == len(evaluator.asked) + len(SHAPES)
    assert essence(tmp_path) < undisturbed[1]
    resumed = Planted()
    run(tmp_path, resumed)
    assert [*evaluator.asked, *resumed.asked] == undisturbed[0]


def test_an_outcome_ends_the_row_of_failures(tmp_path: Path, pauses: list[float]) -> None:
    evaluator = Planted(lambda number, _: FULL if number % 2 == 0 else None)
    assert run(tmp_path, evaluator).tried == TRIALS
    assert len(pauses) > outage.MOST_FAILURES
    assert set(pauses) == {outage.FIRST_PAUSE_S}
