"""Callbacks hear of every outcome, and one that raises ends the search as Ctrl-C does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from replayed_run import HashedMeasurements, matmul_dispatch, program_search, task_of

from mlir_sched.database import RecordStore
from mlir_sched.tuning.callbacks import Callback, Interruption, Trial, with_callbacks
from mlir_sched.tuning.options import TuneOptions

TRIALS = 24
UNTUNED = 2
"""Records of the untuned code of two tasks."""


def run(folder: Path, *callbacks: Callback) -> Interruption:
    tasks = [task_of("first", matmul_dispatch(64, 96, 32)), task_of("second", matmul_dispatch(128, 64, 48))]
    with RecordStore.open(folder / "records.sqlite") as store:
        search = program_search(TuneOptions(trials=TRIALS, round_size=8, seed=3), store, tasks)
        evaluator = HashedMeasurements(folder / "log")
        with Interruption(search.run.clock) as interruption:
            works = ((search, work) for work in search.work(search.run.budget.rest(elsewhere=0)))
            for _, work in with_callbacks(works, callbacks):
                work.run(evaluator)
    return interruption


def test_every_outcome_is_told_once_with_its_trace_and_script(tmp_path: Path) -> None:
    heard: list[Trial] = []
    assert not run(tmp_path, heard.append).early
    assert len(heard) == len({(trial.dispatch, trial.trace.key) for trial in heard}) == TRIALS
    assert Counter(trial.dispatch for trial in heard).keys() == {"first", "second"}
    failed = [trial for trial in heard if trial.outcome.failure is not None]
    assert failed
    assert all(trial.script and trial.program == "default" for trial in heard)
    assert any(trial.outcome.valid is not None and trial.outcome.valid.ratio > 1.0 for trial in heard)


def test_what_the_store_knows_is_not_told_again(tmp_path: Path) -> None:
    run(tmp_path)
    heard: list[Trial] = []
    run(tmp_path, heard.append)
    assert heard == []


def test_a_callback_that_raises_ends_the_search_and_all_is_kept(tmp_path: Path) -> None:
    def enough(trial: Trial) -> None:
        raise StopIteration(f"enough of {trial.dispatch}")

    stopped = run(tmp_path, enough)
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        kept = sum(
            len(store.records(task.key, context)) for task in store.tasks() for context in store.contexts(task.key)
        )
    assert stopped.early
    assert "a callback raised StopIteration: enough of" in stopped.stopped
    assert "test_callbacks.py:" in stopped.stopped
    heard: list[Trial] = []
    run(tmp_path, heard.append)
    assert 0 < len(heard) < TRIALS
    assert len(heard) + kept == TRIALS + UNTUNED


def test_a_keyboard_interrupt_of_a_callback_is_one_of_the_user(tmp_path: Path) -> None:
    def stop(trial: Trial) -> None:
        raise KeyboardInterrupt

    assert run(tmp_path, stop).happened
