import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from mlir_sched.models import (
    CostModel,
    Feed,
    LoopGraph,
    Measured,
    ModelTask,
    RandomModel,
    Rows,
    SharedCostModel,
    XGBoostModel,
    XGBoostOptions,
)
from mlir_sched.models.metrics import pair_accuracy
from mlir_sched.search import Observation, RandomSearch
from mlir_sched.testing import CostModelTests
from mlir_sched.testing.strategies import SPACE
from mlir_sched.trace import Trace


class TestXGBoostModel(CostModelTests):
    def make(self) -> CostModel:
        return XGBoostModel()


class TestRandomModel(CostModelTests):
    def make(self) -> CostModel:
        return RandomModel()


def rows(count: int, n_features: int = 40, seed: int = 0) -> list[Measured]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, n_features)).astype(np.float32)
    throughput = np.exp(-np.abs(features[:, 0].astype(np.float64)) - np.maximum(features[:, 1], 0.0))
    throughput[rng.random(count) < 0.1] = 0.0
    return [Measured(Rows(ModelTask(0), features), throughput)]


def traces(count: int, seed: int = 0) -> tuple[Trace, ...]:
    return tuple(RandomSearch(SPACE, np.random.default_rng(seed)).suggest(count))


def test_rows_that_do_not_fit_together_are_refused() -> None:
    (good,) = rows(20)
    features, task = good.rows.features, ModelTask(0)
    for wrong in (features[0], features * np.inf):
        with pytest.raises(ValueError, match="features"):
            Rows(task, wrong)
    with pytest.raises(ValueError, match="a trace per row"):
        Rows(task, features, traces(3))
    for throughput in (good.throughput[:5], good.throughput + 1.0, good.throughput * np.nan):
        with pytest.raises(ValueError, match="throughput"):
            Measured(good.rows, throughput)


def test_the_trees_rank_unseen_rows() -> None:
    model = XGBoostModel()
    model.fit(rows(300))
    (unseen,) = rows(300, seed=1)
    assert pair_accuracy(model.predict(unseen.rows), unseen.throughput) > 0.75


def test_the_trees_gain_by_what_decides() -> None:
    model = XGBoostModel()
    with pytest.raises(RuntimeError, match="not fitted"):
        model.gains()
    model.fit(rows(300))
    gains = model.gains()
    assert gains.shape == (40,)
    assert sorted(np.argsort(-gains)[:2]) == [0, 1]


@pytest.mark.parametrize("count", [0, 1, XGBoostOptions().min_rows - 1])
def test_too_few_rows_are_not_fitted(count: int) -> None:
    model = XGBoostModel()
    model.fit(rows(100))
    model.fit(rows(count))
    assert not model.fitted


def test_equally_fast_rows_are_not_fitted() -> None:
    (each,) = rows(100)
    model = XGBoostModel()
    model.fit([Measured(each.rows, np.zeros(100))])
    assert not model.fitted


def test_scores_do_not_depend_on_the_number_of_threads() -> None:
    scores = []
    for threads in (1, 2):
        model = XGBoostModel(XGBoostOptions(threads=threads))
        model.fit(rows(500))
        scores.append(model.predict(rows(50, seed=1)[0].rows))
    assert np.array_equal(scores[0], scores[1])


@pytest.mark.nightly
@pytest.mark.alone
def test_fitting_and_predicting_are_fast_enough_for_a_round() -> None:
    def best_of_three(call: Callable[[], object]) -> float:
        def timed() -> float:
            start = time.process_time()
            call()
            return time.process_time() - start

        return min(timed() for _ in range(3))

    model = XGBoostModel()
    assert best_of_three(lambda: model.fit(rows(2000, 60))) < 1.5
    many = rows(10_000, 60, seed=1)[0].rows
    assert best_of_three(lambda: model.predict(many)) < 0.5


class Spy(RandomModel):
    """Keeps what it was fitted on."""

    def fit(self, tasks: Sequence[Measured]) -> None:
        self.seen = tasks
        super().fit(tasks)


class TraceSpy(Spy):
    """Asks for traces alone."""

    feeds = frozenset({Feed.TRACES})


class GraphSpy(Spy):
    """Asks for graphs alone."""

    feeds = frozenset({Feed.GRAPHS})


def results(seconds: Sequence[float | None], seed: int = 0) -> dict[str, Observation]:
    pairs = zip(traces(len(seconds), seed), seconds, strict=True)
    return {trace.key: Observation(trace, each) for trace, each in pairs}


def throughput(seen: Sequence[Measured]) -> list[list[float]]:
    return [sorted(each.throughput.tolist()) for each in seen]


def test_throughput_is_relative_to_the_best_of_its_task() -> None:
    model = Spy()
    shared = SharedCostModel(model)
    first, second = shared.task(SPACE), shared.task(SPACE)
    assert not shared.refresh()
    for task, seconds in ((second, (4.0, 1.0)), (first, (None, 0.5))):
        found = results(seconds)
        task.learn(found, found)
    assert shared.refresh()
    assert throughput(model.seen) == [[0.0, 1.0], [0.25, 1.0]]
    assert [each.rows.task.group for each in model.seen] == [0, 1]


def test_a_task_where_all_failed_has_throughput_zero() -> None:
    model = Spy()
    shared, found = SharedCostModel(model), results((None, None))
    shared.task(SPACE).learn(found, found)
    shared.refresh()
    assert throughput(model.seen) == [[0.0, 0.0]]


def test_the_model_is_refitted_only_when_rows_changed() -> None:
    model = Spy()
    shared, found = SharedCostModel(model), results((1.0, 2.0))
    task = shared.task(SPACE)
    task.learn(found, found)
    shared.refresh()
    seen = model.seen
    shared.refresh()
    assert model.seen is seen
    more = found | results((3.0,), seed=1)
    task.learn(more, more.keys() - found.keys())
    shared.refresh()
    assert len(model.seen[0].rows) == 3


def test_too_many_rows_leave_a_share_of_every_task_whatever_their_times() -> None:
    model = Spy()
    shared = SharedCostModel(model, max_rows=100)
    rng = np.random.default_rng(0)
    for count, task in ((150, shared.task(SPACE)), (50, shared.task(SPACE))):
        found = results(rng.permutation(np.arange(1.0, 1.0 + count)).tolist())
        task.learn(found, found)
    shared.refresh()
    assert [len(each.rows) for each in model.seen] == [75, 25]
    smallest = sorted(results([1.0] * 150))[:75]
    by_key = {trace.key: trace for trace in traces(150)}
    np.testing.assert_array_equal(model.seen[0].rows.features, SPACE.features([by_key[key] for key in smallest]))


class Impossible:
    seconds = -1.0

    def __init__(self, trace: Trace) -> None:
        self.trace = trace


def test_times_that_are_not_positive_are_refused() -> None:
    (trace,) = traces(1)
    with pytest.raises(ValueError, match="positive"):
        SharedCostModel(RandomModel()).task(SPACE).learn({trace.key: Impossible(trace)}, [trace.key])


def test_a_model_that_asks_for_graphs_gets_a_graph_per_row() -> None:
    model = GraphSpy()
    shared, found = SharedCostModel(model), results((1.0, 2.0))
    task = shared.task(SPACE)
    task.learn(found, found)
    task.refresh()
    (seen,) = model.seen
    assert [len(graph.nodes) for graph in seen.rows.graphs] == [1, 1]
    assert not seen.rows.traces
    assert seen.rows.features.shape == (2, 0)
    assert task.predict(list(traces(5))).shape == (5,)


def test_a_graph_that_leads_nowhere_is_refused() -> None:
    nodes = np.zeros((2, 3))
    LoopGraph(nodes, np.array([[0, 1]]))
    for edges in ([[0, 2]], [[-1, 0]], [0, 1]):
        with pytest.raises(ValueError, match=r"edges"):
            LoopGraph(nodes, np.array(edges))
    with pytest.raises(ValueError, match="finite"):
        LoopGraph(np.full((1, 1), np.nan), np.empty((0, 2), dtype=np.int64))


def test_a_model_that_asks_for_traces_gets_traces_and_no_features() -> None:
    model = TraceSpy()
    shared, found = SharedCostModel(model), results((1.0, 2.0))
    task = shared.task(SPACE)
    task.learn(found, found)
    task.refresh()
    (seen,) = model.seen
    assert [trace.key for trace in seen.rows.traces] == sorted(found)
    assert seen.rows.features.shape == (2, 0)
    assert task.predict(list(traces(5))).shape == (5,)


class ToldErrors(Spy):
    """Keeps what it is told of its errors."""

    def note_errors(self, rows: Rows, throughput: NDArray[np.float64]) -> None:
        assert len(rows) == len(throughput)
        self.noted = throughput.tolist()


def test_a_model_is_told_what_came_of_candidates_relative_to_the_best_that_it_knew() -> None:
    model = ToldErrors()
    shared, found = SharedCostModel(model), results((1.0, 2.0))
    task, other = shared.task(SPACE), shared.task(SPACE)
    task.learn(found, found)
    assert shared.refresh()
    new = list(results((0.5, 4.0, None), seed=1).values())
    assert 0 <= task.judged(new) <= 1
    assert model.noted == [2.0, 0.25, 0.0]
    other.judged(new)
    assert model.noted == [1.0, 0.125, 0.0], "of that task it knew none"
