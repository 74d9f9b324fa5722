"""A time whose numbers were not checked is an observation, and nothing else: no best, no finalist."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from stored_records import CONTEXT, TASK, draw_trace, failed, make_record

from mlir_sched.database import RecordStore
from mlir_sched.errors import Failure, FailureClass
from mlir_sched.models import SharedCostModel, XGBoostModel
from mlir_sched.outcome import Judged, Outcome, Timing, Verdict, of_all
from mlir_sched.replaying.inspection import _view_store
from mlir_sched.search import EvolutionarySearch, Observation
from mlir_sched.testing.strategies import SPACE
from mlir_sched.tuning.task_history import TaskHistory
from mlir_sched.tuning.task_search import _observation

UNTUNED = Timing(1e-3, 1e-3, 1e-3, 24, 1.0, 1.0, 1.0)


def timed(ratio: float, samples: int = 24) -> Timing:
    return Timing(1e-3 / ratio, 1e-3 / ratio, 1e-3 / ratio, samples, ratio, ratio, ratio)


def history(*outcomes: Outcome) -> TaskHistory:
    records = (make_record(f"{index}", outcome, trace=draw_trace(index)) for index, outcome in enumerate(outcomes))
    known = TaskHistory(UNTUNED)
    known.learn(records)
    return known


RIGHT, UNKNOWN = Outcome(timed(1.2), None, "right", verdict=Verdict.RIGHT), Outcome(timed(3.0), None, "unknown")


def test_no_verdict_is_given_by_default_and_a_failure_brings_its_own() -> None:
    wrong, stopped = (Failure(kind, "why") for kind in (FailureClass.WRONG_RESULT, FailureClass.RUN_TIMEOUT))
    assert Judged(timed(2.0), None).verdict is Verdict.NOT_CHECKED
    assert Judged(None, wrong, verdict=Verdict.RIGHT).verdict is Verdict.WRONG
    assert Judged(None, stopped, verdict=Verdict.RIGHT).verdict is Verdict.NOT_CHECKED
    with pytest.raises(ValueError, match="has a failure"):
        Judged(timed(2.0), None, verdict=Verdict.WRONG)


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([], Verdict.NOT_CHECKED),
        ([Verdict.RIGHT, Verdict.RIGHT], Verdict.RIGHT),
        ([Verdict.RIGHT, Verdict.NOT_CHECKED], Verdict.NOT_CHECKED),
        ([Verdict.RIGHT, Verdict.NOT_CHECKED, Verdict.WRONG], Verdict.WRONG),
    ],
)
def test_the_whole_is_right_only_where_every_part_is(parts: list[Verdict], whole: Verdict) -> None:
    assert of_all(parts) is whole


def test_what_was_not_checked_is_no_best_of_a_search() -> None:
    alone, both = history(UNKNOWN), history(UNKNOWN, RIGHT)
    assert (alone.best_trace(), alone.best_seconds(), alone.best_ratio(), [*alone.ranked()]) == (None, None, 1.0, [])
    assert [record.outcome for record in both.ranked()] == [RIGHT]
    assert [record.outcome for record in both.unchecked()] == [UNKNOWN]
    assert both.best_ratio() == pytest.approx(1.2)
    assert both.ratios() == (None, 1.2)


def test_what_was_not_checked_is_no_best_of_a_store_and_keeps_its_verdict(tmp_path: Path) -> None:
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        store.add_task(TASK)
        store.add([make_record("unknown", UNKNOWN)])
        assert store.best(TASK.key, CONTEXT) is None
        store.add([right := make_record("right", RIGHT)])
        assert store.best(TASK.key, CONTEXT) == right
        assert [record.outcome for record in store.records(TASK.key, CONTEXT)] == [UNKNOWN, RIGHT]


def test_a_store_shows_how_many_times_were_not_checked(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    with RecordStore.open(path) as store:
        store.add_task(TASK)
        store.add([make_record("unknown", UNKNOWN), make_record("failed", failed(FailureClass.RUN_TIMEOUT))])
    (result,) = _view_store(str(path)).results
    assert (result.records, result.not_checked, result.best) == (2, 1, None)


def test_an_estimate_counts_where_nothing_is_run() -> None:
    assert Judged(timed(2.0, samples=0), None).valid is not None


def test_a_model_learns_from_what_was_not_checked_and_no_candidate_is_made_from_it_where_it_is_fast() -> None:
    found = [_observation(draw_trace(0), outcome, UNTUNED) for outcome in (UNKNOWN, RIGHT)]
    assert [each.proven for each in found] == [False, True]
    assert found[0].seconds == pytest.approx(1e-3 / 3)
    search = EvolutionarySearch(SPACE, np.random.default_rng(0), SharedCostModel(XGBoostModel()))
    fast, slow = search.suggest(2)
    search.observe([Observation(fast, 1e-6, proven=False), Observation(slow, 1e-3)])
    started = {trace.key for trace in search._first_generation()}
    assert slow.key in started
    assert fast.key not in started


def test_candidates_are_made_from_slow_ones_whether_these_were_checked_or_not() -> None:
    search = EvolutionarySearch(SPACE, np.random.default_rng(0), SharedCostModel(XGBoostModel()))
    right, slow, fast = search.suggest(3)
    search.observe([Observation(right, 1e-4), Observation(slow, 1e-3, proven=False)])
    search.observe([Observation(fast, 1e-6, proven=False)])
    started = {trace.key for trace in search._first_generation()}
    assert {right.key, slow.key} <= started
    assert fast.key not in started
