from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mlir_sched.errors import UserError
from mlir_sched.models import CostModel, Feed, RandomModel, Rows, SharedCostModel, XGBoostModel
from mlir_sched.models.cost_model import FloatArray, Measured
from mlir_sched.search import EvolutionaryOptions, EvolutionarySearch, Observation, RandomSearch
from mlir_sched.search.evolutionary import spread_out
from mlir_sched.search.synthetic_space import SyntheticMatmulSpace
from mlir_sched.testing.strategies import SPACE, run_search
from mlir_sched.trace import Trace

SMALL = EvolutionaryOptions(population=128, generations=3)


class CountingSpace(SyntheticMatmulSpace):
    """Counts what a search costs."""

    def __init__(self) -> None:
        super().__init__(64, 48, 32)
        self.__dict__.update(samples=0, repairs=0)

    def sample(self, rng: np.random.Generator, sketch: str | None = None) -> Trace:
        self.__dict__["samples"] += 1
        return super().sample(rng, sketch)

    def repaired(self, trace: Trace) -> Trace:
        self.__dict__["repairs"] += 1
        return super().repaired(trace)


def evolution(seed: int, options: EvolutionaryOptions = SMALL) -> EvolutionarySearch:
    return EvolutionarySearch(SPACE, np.random.default_rng(seed), SharedCostModel(XGBoostModel()), options)


def best(observed: Sequence[Observation]) -> float:
    return min(o.seconds for o in observed if o.seconds is not None)


@pytest.mark.nightly
def test_evolution_with_a_model_beats_random_search() -> None:
    evolved = [best(run_search(evolution(seed), SPACE, 6)) for seed in range(5)]
    drawn = [best(run_search(RandomSearch(SPACE, np.random.default_rng(seed)), SPACE, 6)) for seed in range(5)]
    assert np.mean(np.log(evolved)) < np.mean(np.log(drawn)) - 0.1


def test_the_first_batch_covers_every_sketch_evenly() -> None:
    for seed in range(5):
        sketches = [trace.sketch for trace in evolution(seed).suggest(15)]
        counts = [sketches.count(sketch) for sketch in SPACE.sketches]
        assert sum(counts) == 15
        assert min(counts) >= 3


def test_older_records_guide_the_first_suggestions() -> None:
    rng = np.random.default_rng(0)
    records = [Observation(trace, SPACE.seconds(trace)) for trace in RandomSearch(SPACE, rng).suggest(200)]
    informed, uninformed = [], []
    for seed in range(3):
        search = evolution(seed)
        uninformed += [SPACE.seconds(trace) or np.inf for trace in evolution(seed).suggest(16)]
        search.observe(records)
        informed += [SPACE.seconds(trace) or np.inf for trace in search.suggest(16)]
    assert np.median(informed) < np.median(uninformed) / 2


def test_a_model_of_another_task_guides_the_first_suggestions() -> None:
    shared = SharedCostModel(XGBoostModel())
    other = SyntheticMatmulSpace(96, 64, 64)
    run_search(EvolutionarySearch(other, np.random.default_rng(0), shared, SMALL), other, 6)
    guided = EvolutionarySearch(SPACE, np.random.default_rng(1), shared, SMALL).suggest(16)
    alone = evolution(1).suggest(16)
    median = [np.median([SPACE.seconds(trace) or np.inf for trace in traces]) for traces in (guided, alone)]
    assert median[0] < median[1]


def test_one_suggest_costs_a_bounded_number_of_samples_and_repairs() -> None:
    space = CountingSpace()
    options = EvolutionaryOptions(population=64, generations=4, max_repairs=100)
    search = EvolutionarySearch(space, np.random.default_rng(0), SharedCostModel(XGBoostModel()), options)
    run_search(search, space, 1)
    space.__dict__.update(samples=0, repairs=0)
    search.suggest(16)
    assert 0 < space.__dict__["repairs"] <= 100
    assert 0 < space.__dict__["samples"] < 300


def test_the_quality_of_the_model_is_reported_for_rounds_it_had_not_seen() -> None:
    search = evolution(0)
    run_search(search, SPACE, 6)
    assert len(search.rank_accuracy) == 5
    assert np.mean(search.rank_accuracy) > 0.55


def test_copies_alone_and_a_population_without_generations_work() -> None:
    for options in (
        EvolutionaryOptions(population=64, mutation_chance=0.0),
        EvolutionaryOptions(population=64, generations=0),
        EvolutionaryOptions(population=64, random_share=1.0),
    ):
        assert len(run_search(evolution(0, options), SPACE, 3)) == 48


def test_searches_that_share_a_model_repeat_themselves() -> None:
    def run() -> list[str]:
        shared = SharedCostModel(RandomModel(3))
        searches = [EvolutionarySearch(SPACE, np.random.default_rng(seed), shared, SMALL) for seed in (0, 1)]
        return [o.trace.key for _ in range(2) for search in searches for o in run_search(search, SPACE, 1)]

    assert run() == run()


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_an_impossible_time_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        Observation(SPACE.sample(np.random.default_rng(0)), seconds)


def test_spread_out_rows_are_distinct_and_include_the_extremes() -> None:
    features = np.array([[0.0, 7.0], [0.1, 7.0], [10.0, 7.0], [5.0, 7.0], [0.2, 7.0]], dtype=np.float32)
    assert spread_out(features, 3) == [0, 2, 3]
    assert sorted(spread_out(features, 5)) == [0, 1, 2, 3, 4]
    assert sorted(spread_out(np.zeros((4, 2), dtype=np.float32), 4)) == [0, 1, 2, 3]


class RowCount(RandomModel):
    """Counts the rows that it is fitted to, and those of failures among them."""

    def fit(self, tasks: Sequence[Measured]) -> None:
        (each,) = tasks
        self.rows, self.failed = len(each.rows), int((each.throughput == 0.0).sum())
        self.slow = int((each.throughput < 0.1).sum())
        self.features = each.rows.features
        super().fit(tasks)


@pytest.mark.parametrize("order", [1, -1])
def test_a_model_with_room_for_few_rows_learns_from_failures_and_slow_candidates_in_proportion(order: int) -> None:
    space, model = SyntheticMatmulSpace(512, 384, 640), RowCount()
    search = EvolutionarySearch(space, np.random.default_rng(0), SharedCostModel(model, max_rows=100))
    traces = RandomSearch(space, np.random.default_rng(1)).suggest(400)
    fails = {trace.key for trace in traces if int(trace.key[-1], 16) < 4}
    results = [Observation(trace, None if trace.key in fails else space.seconds(trace)) for trace in traces][::order]
    for start in range(0, 400, 40):
        search.observe(results[start : start + 40])
    search.suggest(1)
    failed = sum(result.seconds is None for result in results)
    times = [result.seconds for result in results if result.seconds]
    slow = failed + sum(seconds > 10 * min(times) for seconds in times)
    assert model.rows == 100
    assert model.failed == pytest.approx(failed / 4, abs=10)
    assert model.slow == pytest.approx(slow / 4, abs=10)


def test_the_rows_of_a_model_with_room_for_few_do_not_hang_on_the_order_of_arrival() -> None:
    space = SyntheticMatmulSpace(512, 384, 640)
    traces = RandomSearch(space, np.random.default_rng(1)).suggest(400)
    fastest_first = sorted((Observation(t, space.seconds(t)) for t in traces), key=lambda o: o.seconds or np.inf)
    learnt = list[FloatArray]()
    for arrival in (fastest_first, fastest_first[::-1]):
        model = RowCount()
        search = EvolutionarySearch(space, np.random.default_rng(0), SharedCostModel(model, max_rows=100))
        for start in range(0, 400, 40):
            search.observe(arrival[start : start + 40])
        search.suggest(1)
        learnt.append(model.features)
    first, second = learnt
    np.testing.assert_array_equal(first, second)


class Sure(CostModel):
    """A model that knows every time, or the opposite of it, and is sure of what it holds to be fast."""

    feeds = frozenset({Feed.TRACES})
    fitted = False

    def __init__(self, sign: float = 1.0) -> None:
        self._sign = sign

    def fit(self, tasks: Sequence[Measured]) -> None:
        self.fitted = True

    def predict(self, rows: Rows) -> NDArray[np.float64]:
        return np.array([50.0 - self._sign * np.log(SPACE.seconds(trace) or 1.0) for trace in rows.traces])

    def predict_with_spread(self, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        scores = self.predict(rows)
        return scores, 100.0 - scores

    def save(self, path: Path) -> None:
        raise NotImplementedError

    def load(self, path: Path) -> None:
        raise NotImplementedError


def rounds_by(acquisition: str, model: CostModel, count: int = 3, exploration: float = 0.5) -> list[list[str]]:
    """Return the keys of the candidates of each round."""
    options = replace(SMALL, acquisition=acquisition, exploration=exploration, random_share=0.0)
    search = EvolutionarySearch(SPACE, np.random.default_rng(0), SharedCostModel(model), options)
    return [[o.trace.key for o in run_search(search, SPACE, 1)] for _ in range(count)]


def test_the_mean_alone_is_an_exploration_of_zero() -> None:
    found = [rounds_by(*each) for each in (("mean", XGBoostModel()), ("ucb", XGBoostModel(), 3, 0.0))]
    assert found[0] == found[1]
    assert found[0] != rounds_by("ucb", XGBoostModel())


def test_candidates_of_which_a_model_is_least_sure_are_others_than_those_that_it_holds_to_be_fast() -> None:
    first, fast = rounds_by("mean", Sure(), 2)
    same, doubtful = rounds_by("uncertainty", Sure(), 2)
    assert first == same, "nothing is known yet"
    of_opposite = rounds_by("mean", Sure(-1.0), 2)[1]
    assert doubtful == of_opposite
    assert not {*fast} & {*doubtful}


def test_ping_pong_learns_after_a_round_that_was_ranked_badly_and_else_takes_what_is_fast() -> None:
    assert rounds_by("ping_pong", Sure()) == rounds_by("mean", Sure()), "ranked well"
    *before, after = rounds_by("ping_pong", Sure(-1.0))
    *same, taken = rounds_by("mean", Sure(-1.0))
    assert before == same, "no round was ranked yet"
    assert not {*after} & {*taken}


def test_an_unknown_acquisition_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UserError, match="ucb, mean, uncertainty, ping_pong, but got 'thompson'"):
        EvolutionaryOptions(acquisition="thompson")
