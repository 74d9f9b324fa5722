"""What a cost model learns from measured candidates of dispatches that are not searched."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from mlir_sched.models import Feed, Measured, RandomModel, SharedCostModel, XGBoostModel
from mlir_sched.search import EvolutionarySearch, Observation, RandomSearch
from mlir_sched.search.synthetic_space import SyntheticMatmulSpace
from mlir_sched.testing.strategies import SPACE
from mlir_sched.trace import Trace


class Spy(RandomModel):
    """Keeps what it was fitted on."""

    seen: Sequence[Measured] = ()

    def fit(self, tasks: Sequence[Measured]) -> None:
        self.seen = tasks
        super().fit(tasks)


class TraceSpy(Spy):
    """Asks for traces alone."""

    feeds = frozenset({Feed.TRACES})


def traces(count: int, seed: int = 0) -> list[Trace]:
    return RandomSearch(SPACE, np.random.default_rng(seed)).suggest(count)


def seconds(count: int) -> np.ndarray:
    return np.arange(1.0, count + 1)


def test_a_source_is_learnt_before_the_first_candidate_on_a_scale_of_its_own() -> None:
    spy = Spy()
    model = SharedCostModel(spy)
    task = model.task(SPACE)
    assert not task.refresh()
    model.add_source(SPACE, traces(3), np.array([4e-3, 1e-3, np.inf]))
    model.add_source(SPACE, traces(2, seed=1), np.array([2.0, 2.0]))
    assert task.refresh()
    assert [each.throughput.tolist() for each in spy.seen] == [[0.25, 1.0, 0.0], [1.0, 1.0]]
    assert np.array_equal(spy.seen[0].rows.features, SPACE.features(traces(3)))
    assert len({each.rows.task.group for each in spy.seen}) == 2


def test_tasks_and_sources_are_told_apart_and_come_in_the_order_of_their_numbers() -> None:
    spy = Spy()
    model = SharedCostModel(spy)
    first = model.task(SPACE)
    model.add_source(SPACE, traces(2, seed=1), seconds(2))
    second = model.task(SPACE)
    for task in (second, first):
        learnt = {trace.key: Observation(trace, 1e-3) for trace in traces(3)}
        task.learn(learnt, learnt)
    model.refresh()
    assert [(each.rows.task.group, len(each.rows)) for each in spy.seen] == [(0, 3), (1, 2), (2, 3)]


def test_sources_take_no_rows_from_the_tasks() -> None:
    spy = Spy()
    model = SharedCostModel(spy, max_rows=10)
    model.add_source(SPACE, traces(8), seconds(8))
    task = model.task(SPACE)
    learnt = {trace.key: Observation(trace, 1e-3) for trace in traces(10, seed=1)}
    task.learn(learnt, learnt)
    model.refresh()
    assert [len(each.rows) for each in spy.seen] == [8, 10]


def test_a_model_gets_of_sources_what_it_asks_for() -> None:
    spy = TraceSpy()
    model = SharedCostModel(spy)
    model.add_source(SPACE, traces(3), seconds(3))
    model.refresh()
    (source,) = spy.seen
    assert source.rows.traces == tuple(traces(3))
    assert source.rows.features.shape == (3, 0)


def test_a_source_without_candidates_is_none_and_times_must_be_positive() -> None:
    spy = Spy()
    model = SharedCostModel(spy)
    model.add_source(SPACE, [], np.empty(0))
    assert not model.refresh()
    with pytest.raises(ValueError, match="positive"):
        model.add_source(SPACE, traces(2), np.array([1.0, 0.0]))


def test_a_search_with_sources_evolves_at_once() -> None:
    """The first candidates of a shape are faster where candidates of another shape are known."""
    other = SyntheticMatmulSpace(96, 64, 64)
    known = RandomSearch(other, np.random.default_rng(0)).suggest(200)
    means = []
    for sources in (False, True):
        model = SharedCostModel(XGBoostModel())
        if sources:
            model.add_source(other, known, np.array([other.seconds(trace) or np.inf for trace in known]))
        first = EvolutionarySearch(SPACE, np.random.default_rng(3), model).suggest(16)
        means.append(np.mean([np.log(SPACE.seconds(trace) or 1.0) for trace in first]))
    assert means[1] < means[0] - np.log(2)
