"""The first round of a task: traces that other dispatches lend it share it with those of the strategy."""

from __future__ import annotations

import numpy as np
import pytest
from replayed_run import TARGET
from speedups import Speedups
from task_searches import TASK, run_round, task_search

from mlir_sched.database import RecordStore
from mlir_sched.search import RandomSearch
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.trace import Trace
from mlir_sched.tuning.exchange import fitting, offer_traces


def own_traces(count: int, seed: int = 5) -> list[Trace]:
    assert TASK.dispatch is not None
    space = DesignSpace(Space.default(TARGET), TASK.dispatch, TARGET)
    return RandomSearch(space, np.random.default_rng(seed)).suggest(count)


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 8])
def test_lent_traces_are_at_most_half_of_a_first_round_however_small(limit: int) -> None:
    lent = own_traces(6)
    for prepared in (False, True):
        with RecordStore.open("sqlite://") as store:
            search = task_search(store)
            search.begin_with(lent, 6)
            if prepared:
                search.prepare(8)
            run_round(search, Speedups({"matmul": 1.0}), limit=limit)
            keys = list(search.history.records)
            assert [key for key in keys if key in {t.key for t in lent}] == [t.key for t in lent[: limit // 2]]
            assert len(keys) == limit
            run_round(search, Speedups({"matmul": 1.0}))
            assert len(search.history.records) == limit + 8
            assert not search.lent, "the others are dropped"


def test_lent_traces_come_after_the_given_ones_and_are_half_of_the_rest() -> None:
    given, lent = own_traces(2), own_traces(6, seed=6)
    with RecordStore.open("sqlite://") as store:
        search = task_search(store, starts=given)
        search.begin_with([*given, *lent], 6)
        run_round(search, Speedups({"matmul": 1.0}))
        keys = list(search.history.records)
        assert keys[:2] == [trace.key for trace in given]
        assert [keys.index(trace.key) for trace in lent[:3]] == [3, 5, 7]
        assert len(keys) == 8


def test_what_is_lent_and_gives_way_to_a_start_may_be_suggested_again() -> None:
    lent, (late,) = own_traces(4), own_traces(1, seed=6)
    with RecordStore.open("sqlite://") as store:
        search = task_search(store, starts=own_traces(1, seed=7))
        search.begin_with(lent, 4)
        search.prepare(8)  # three of four have room behind one start
        search.offer([late, own_traces(2, seed=8)[0]], 2)
        assert not search.strategy.unseen(lent[2:3])
        run_round(search, Speedups({"matmul": 1.0}))
        tried = list(search.history.records)
        assert [trace.key in tried for trace in lent] == [True, True, False, False]
        assert [trace.key for trace in search.strategy.unseen(lent[2:3])] == [lent[2].key]
        assert len(tried) == len(set(tried)) == 8


def test_what_is_lent_is_not_given_again_by_another_task() -> None:
    (trace,) = own_traces(1)
    with RecordStore.open("sqlite://") as store:
        search, other = task_search(store), task_search(store)
        search.begin_with([trace, trace], 4)
        assert [each.key for each in search.lent] == [trace.key]
        assert search.fitted(trace) is None
        assert fitting(trace, other, [search]) == []
        run_round(other, Speedups({"matmul": 2.0}))
        offer_traces([search], [])
        assert not search.found


def test_a_task_that_has_records_begins_from_them() -> None:
    with RecordStore.open("sqlite://") as store:
        run_round(task_search(store, sources="a"), Speedups({"matmul": 1.0}))
        search = task_search(store, since=store.last_record(), sources="a")
        search.warm_start()
        search.begin_with(own_traces(4), 4)
        assert not search.lent
