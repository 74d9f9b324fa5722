import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mlir_sched.models import CostModel, RandomModel, SharedCostModel, XGBoostModel, XGBoostOptions
from mlir_sched.models.metrics import pair_accuracy

Rows = tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.int64]]
both = pytest.mark.parametrize("make", [XGBoostModel, RandomModel])


def rows(count: int, n_features: int = 40, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, n_features)).astype(np.float32)
    throughput = np.exp(-np.abs(features[:, 0].astype(np.float64)) - np.maximum(features[:, 1], 0.0))
    throughput[rng.random(count) < 0.1] = 0.0
    return features, throughput, rng.integers(3, size=count)


@both
def test_a_new_model_refuses_to_predict_or_save(make: Callable[[], CostModel], tmp_path: Path) -> None:
    model = make()
    assert not model.fitted
    with pytest.raises(RuntimeError, match="not fitted"):
        model.predict(np.zeros((2, 3)))
    with pytest.raises(RuntimeError, match="not fitted"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@both
def test_the_same_data_gives_the_same_scores(make: Callable[[], CostModel]) -> None:
    scores = []
    for _ in range(2):
        model = make()
        model.fit(*rows(200))
        scores.append(model.predict(rows(50, seed=1)[0]))
    assert np.array_equal(scores[0], scores[1])
    assert scores[0].shape == (50,)


@both
def test_a_loaded_model_is_fitted(make: Callable[[], CostModel], tmp_path: Path) -> None:
    model, loaded = make(), make()
    model.fit(*rows(100))
    model.save(tmp_path / "model.json")
    loaded.load(tmp_path / "model.json")
    features = rows(50, seed=1)[0]
    assert loaded.fitted
    assert np.array_equal(loaded.predict(features), model.predict(features))
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]


@both
@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": "other"}'])
def test_a_file_of_another_kind_is_refused(make: Callable[[], CostModel], text: str, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(ValueError, match=r".+"):
        make().load(tmp_path / "model.json")


@both
def test_rows_that_do_not_fit_together_are_refused(make: Callable[[], CostModel]) -> None:
    features, throughput, groups = rows(20)
    for wrong in (
        (features[:5], throughput, groups),
        (features, throughput, groups[:5]),
        (features[0], throughput, groups),
        (features, throughput + 1.0, groups),
        (features * np.inf, throughput, groups),
    ):
        with pytest.raises(ValueError, match=r".+"):
            make().fit(*wrong)


def test_the_trees_rank_unseen_rows() -> None:
    model = XGBoostModel()
    model.fit(*rows(300))
    features, throughput, _ = rows(300, seed=1)
    assert pair_accuracy(model.predict(features), throughput) > 0.75


@pytest.mark.parametrize("count", [0, 1, XGBoostOptions().min_rows - 1])
def test_too_few_rows_are_not_fitted(count: int) -> None:
    model = XGBoostModel()
    model.fit(*rows(100))
    model.fit(*rows(count))
    assert not model.fitted


def test_equally_fast_rows_are_not_fitted() -> None:
    features, throughput, groups = rows(100)
    model = XGBoostModel()
    model.fit(features, np.zeros_like(throughput), groups)
    assert not model.fitted


def test_scores_do_not_depend_on_the_number_of_threads() -> None:
    scores = []
    for threads in (1, 2):
        model = XGBoostModel(XGBoostOptions(threads=threads))
        model.fit(*rows(500))
        scores.append(model.predict(rows(50, seed=1)[0]))
    assert np.array_equal(scores[0], scores[1])


def test_fitting_and_predicting_are_fast_enough_for_a_round() -> None:
    def best_of_three(call: Callable[[], object]) -> float:
        def timed() -> float:
            start = time.process_time()
            call()
            return time.process_time() - start

        return min(timed() for _ in range(3))

    model = XGBoostModel()
    assert best_of_three(lambda: model.fit(*rows(2000, 60))) < 1.5
    many = rows(10_000, 60, seed=1)[0]
    assert best_of_three(lambda: model.predict(many)) < 0.5


class Spy(RandomModel):
    """Keeps what it was fitted on."""

    def fit(self, features: object, throughput: object, groups: object) -> None:
        self.seen = (np.asarray(features), np.asarray(throughput), np.asarray(groups))
        super().fit(*self.seen)


def test_throughput_is_relative_to_the_best_of_its_task() -> None:
    model = Spy()
    shared = SharedCostModel(model)
    first, second = shared.add_task(), shared.add_task()
    assert not shared.refresh()
    shared.update(second, np.ones((2, 3), dtype=np.float32), np.array([4.0, 1.0]))
    shared.update(first, np.zeros((2, 3), dtype=np.float32), np.array([np.inf, 0.5]))
    assert shared.refresh()
    assert model.seen[1].tolist() == [0.0, 1.0, 0.25, 1.0]
    assert model.seen[2].tolist() == [first, first, second, second]


def test_a_task_where_all_failed_has_throughput_zero() -> None:
    model = Spy()
    shared = SharedCostModel(model)
    shared.update(shared.add_task(), np.zeros((2, 3), dtype=np.float32), np.array([np.inf, np.inf]))
    shared.refresh()
    assert model.seen[1].tolist() == [0.0, 0.0]


def test_the_model_is_refitted_only_when_rows_changed() -> None:
    model = Spy()
    shared = SharedCostModel(model)
    task = shared.add_task()
    shared.update(task, np.zeros((2, 3), dtype=np.float32), np.array([1.0, 2.0]))
    shared.refresh()
    seen = model.seen
    shared.refresh()
    assert model.seen is seen
    shared.update(task, np.zeros((3, 3), dtype=np.float32), np.array([1.0, 2.0, 3.0]))
    shared.refresh()
    assert len(model.seen[0]) == 3


def test_too_many_rows_leave_the_first_of_every_task_whatever_their_times() -> None:
    model = Spy()
    shared = SharedCostModel(model, max_rows=100)
    seconds = np.random.default_rng(0).permutation(np.arange(1.0, 151.0))
    first, second = shared.add_task(), shared.add_task()
    shared.update(first, np.zeros((100, 3), dtype=np.float32), seconds[:100], candidates=150)
    shared.update(second, np.zeros((50, 3), dtype=np.float32), seconds[:50])
    shared.refresh()
    assert np.bincount(model.seen[2]).tolist() == [75, 25]
    assert model.seen[1][:75] == pytest.approx(seconds[:100].min() / seconds[:75])


def test_times_that_are_not_positive_are_refused() -> None:
    shared = SharedCostModel(RandomModel())
    with pytest.raises(ValueError, match="positive"):
        shared.update(shared.add_task(), np.zeros((1, 3), dtype=np.float32), np.array([0.0]))
