"""Traces that are given to a task, by the user or by another task, wait until they are tried."""

from __future__ import annotations

import numpy as np
import pytest
from speedups import Speedups
from task_searches import run_round, task_search

from mlir_sched.database import RecordStore


@pytest.mark.parametrize("limits", [(2, 8, 8), (1, 1, 1, 1, 1, 1), (3, 3), (8,)])
def test_given_traces_that_a_small_round_has_no_room_for_come_first_in_the_next(limits: tuple[int, ...]) -> None:
    with RecordStore.open("sqlite://") as store:
        rng, search = np.random.default_rng(1), task_search(store)
        given = list({trace.key: trace for trace in (search.space.sample(rng) for _ in range(6))}.values())
        for trace in given:
            search.start_from(trace)
        for limit in limits:
            search.prepare(8)
            run_round(search, Speedups({"matmul": 1.0}), limit=limit)
        tried = list(search.history.records)
        assert tried[: len(given)] == [trace.key for trace in given]
        assert len(tried) == sum(limits), "each is tried once"
        assert not search.starts


def test_a_trace_that_is_given_after_it_was_chosen_is_tried_once() -> None:
    with RecordStore.open("sqlite://") as store:
        search = task_search(store)
        search.prepare(8)
        given = search.chosen[3]
        search.start_from(given)
        run_round(search, Speedups({"matmul": 1.0}))
        tried = list(search.history.records)
        assert tried[0] == given.key
        assert len(tried) == 8
