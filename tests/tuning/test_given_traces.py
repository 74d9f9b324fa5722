"""Traces that are given to a task, by the user or by another task, wait until they are tried."""

from __future__ import annotations

import numpy as np
import pytest
from replayed_run import TARGET, program_search, searched
from speedups import Speedups
from task_searches import TASK, run_round, task_search

from mlir_sched.database import RecordStore
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.tuning.journal import RoundLog
from mlir_sched.tuning.options import TuneOptions

assert TASK.dispatch is not None
SPACE = DesignSpace(Space.default(TARGET), TASK.dispatch, TARGET)


@pytest.mark.parametrize("limits", [(2, 8, 8), (1, 1, 1, 1, 1, 1), (3, 3), (8,)])
def test_given_traces_that_a_small_round_has_no_room_for_come_first_in_the_next(limits: tuple[int, ...]) -> None:
    with RecordStore.open("sqlite://") as store:
        rng, search = np.random.default_rng(1), task_search(store)
        given = list({trace.key: trace for trace in (search.space.sample(rng) for _ in range(6))}.values())
        search.starts = given
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
        search.starts = [given]
        run_round(search, Speedups({"matmul": 1.0}))
        tried = list(search.history.records)
        assert tried[0] == given.key
        assert len(tried) == 8


@pytest.mark.parametrize(("round_size", "most"), [(8, 4), (3, 2), (1, 1)])
def test_templates_come_behind_the_users_traces_and_fill_half_a_round_at_most(round_size: int, most: int) -> None:
    options, templates = TuneOptions(trials=12, round_size=round_size, templates=True), SPACE.templates()
    given = [SPACE.sample(np.random.default_rng(1)), templates[0]]
    with RecordStore.open("sqlite://") as store:
        search = searched(program_search(options, store, [TASK], start_from=given), Speedups({"matmul": 1.0}))
    (task,) = search.searches
    tried = list(task.history.records)
    assert tried[: 2 + most] == [trace.key for trace in (*given, *templates[1 : 1 + most])]
    assert len(tried) == len(set(tried)) == 12


def test_a_later_search_tries_the_templates_that_have_no_record() -> None:
    templates = [trace.key for trace in SPACE.templates()]
    with RecordStore.open("sqlite://") as store:
        for seed in (0, 1):
            options = TuneOptions(trials=8, seed=seed, templates=True)
            search = searched(program_search(options, store, [TASK]), Speedups({"matmul": 1.0}))
            (task,) = search.searches
            assert search.measured == search.tried == 8
            assert [key in task.history.records for key in templates] == [place < 4 * (seed + 1) for place in range(8)]


def test_without_the_option_no_template_is_tried_and_the_search_is_the_same() -> None:
    with RecordStore.open("sqlite://") as store:
        plain = program_search(TuneOptions(trials=8), store, [TASK])
        guessing = program_search(TuneOptions(trials=8, templates=True), store, [TASK])
        assert (plain.run.templates(SPACE), guessing.run.templates(SPACE)) == ((), SPACE.templates())
        assert plain.run.options.search_key() == (0, 8)
        assert plain.run.key != guessing.run.key
        logs = [RoundLog.of(search.run, [TASK], TARGET) for search in (plain, guessing)]
        assert logs[0].key != logs[1].key
