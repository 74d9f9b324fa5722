"""What a task is offered from elsewhere: the best traces of the other tasks of a run, and in which order they come."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from replayed_run import TARGET, matmul_dispatch, program_search, searched, task_of
from speedups import Speedups
from task_searches import TASK, run_round, task_search

from mlir_sched.database import RecordStore
from mlir_sched.payload import Dispatch
from mlir_sched.search import RandomSearch
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.trace import Trace
from mlir_sched.tuning.exchange import MOST_EXCHANGED, FoundTrace, offer_traces
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.task_search import TaskSearch

assert TASK.dispatch is not None
EVEN = Speedups({"matmul": 1.0})


def own_traces(count: int, seed: int = 5, dispatch: Dispatch = TASK.dispatch) -> list[Trace]:
    return RandomSearch(DesignSpace(Space.default(TARGET), dispatch, TARGET), np.random.default_rng(seed)).suggest(
        count
    )


def tried_of(search: TaskSearch, names: dict[str, list[Trace]]) -> list[str]:
    """Return what a task has tried, by the first letters of where it came from; its strategy's own as a dot."""
    known = {trace.key: name for name, traces in names.items() for trace in traces}
    return [known.get(key, ".") for key in search.history.records]


@pytest.mark.parametrize("prepared", [False, True])
def test_the_first_candidates_are_found_guessed_and_suggested_in_turns(prepared: bool) -> None:
    names = {"f": own_traces(2), "g": own_traces(2, seed=6), "l": own_traces(2, seed=7)}
    orders = []
    for lent in (names["l"], []):
        with RecordStore.open("sqlite://") as store:
            search = task_search(store)
            search.guess(names["g"], 2)
            search.offer(names["f"], 2)
            search.begin_with(lent, 2)
            if prepared:
                search.prepare(8)
            run_round(search, EVEN)
            orders.append("".join(tried_of(search, names)))
    assert orders == ["f.glf.gl", "fgfg...."]


def test_what_a_small_round_has_no_room_for_shares_the_next_ones_with_what_is_suggested() -> None:
    names = {"f": own_traces(2), "g": own_traces(2, seed=6)}
    with RecordStore.open("sqlite://") as store:
        search = task_search(store)
        search.guess(names["g"], 2)
        search.offer(names["f"], 2)
        for _ in range(4):
            run_round(search, EVEN, limit=2)
        assert "".join(tried_of(search, names)) == "fgf.g..."
        assert not search.found
        assert not search.guesses


def test_an_offer_takes_the_place_of_the_one_before_which_may_be_suggested_again() -> None:
    early, late = own_traces(2), own_traces(1, seed=6)
    with RecordStore.open("sqlite://") as store:
        search = task_search(store)
        search.offer(early, 2)
        search.prepare(8)
        assert not search.strategy.unseen(early)
        search.offer([*late, early[1]], 2)
        assert [trace.key for trace in search.found] == [late[0].key, early[1].key]
        assert [trace.key for trace in search.strategy.unseen(early)] == [early[0].key]


def test_the_nearest_tasks_traces_are_offered_first_and_those_of_the_same_ops_before_them() -> None:
    near, far = matmul_dispatch(384, 256, 448), matmul_dispatch(24, 16, 8)
    traces = own_traces(4)
    found = [
        FoundTrace(far, traces[0], 9.0),
        FoundTrace(near, traces[1], 1.0),
        FoundTrace(None, traces[2], 10.0),
        FoundTrace(TASK.dispatch, traces[3], 0.1),
    ]
    with RecordStore.open("sqlite://") as store:
        search = task_search(store)
        offer_traces([search], found)
    fitted = [search.space.repaired(trace).key for trace in (traces[3], traces[1], traces[0])]
    assert [trace.key for trace in search.found] == fitted[:MOST_EXCHANGED]


def test_a_task_begins_with_the_best_that_a_task_of_its_family_has_by_then() -> None:
    heavy = replace(task_of("heavy", matmul_dispatch(384, 256, 512)), weight=9)
    light = task_of("light", matmul_dispatch(384, 256, 448))
    with RecordStore.open("sqlite://") as store:
        options = TuneOptions(trials=24, round_size=8)
        evaluator = Speedups({"heavy": lambda number: 1.0 + number, "light": 1.0})
        first, second = searched(program_search(options, store, [heavy, light]), evaluator).searches
    before = list(first.history.records.values())[: evaluator.measured.index("light")][-1].trace
    assert before is not None
    assert next(iter(second.history.records)) == second.space.repaired(before).key, "the last of them was the fastest"
