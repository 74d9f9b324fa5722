"""A model of quantiles: its intervals are as wide as its errors in the last rounds were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mlir_sched.models import CostModel, Measured, ModelTask, QuantileModel, Rows, XGBoostModel
from mlir_sched.models.cost_model import REACH
from mlir_sched.models.metrics import pair_accuracy
from mlir_sched.models.quantile_model import ROUNDS
from mlir_sched.testing import CostModelTests


class TestQuantileModel(CostModelTests):
    def make(self) -> CostModel:
        return QuantileModel()


def measured(count: int, seed: int, noise: float = 0.05) -> Measured:
    """Return rows whose throughput follows from a feature, with noise that another one makes up to thrice as large."""
    rng = np.random.default_rng(seed)
    features = rng.random((count, 8)).astype(np.float32)
    spread = noise * (1 + 2 * features[:, 1].astype(np.float64))
    throughput = np.clip(0.2 + 0.6 * features[:, 0] + spread * rng.standard_normal(count), 0.0, 1.0)
    return Measured(Rows(ModelTask(0), features), throughput)


def fitted(count: int = 400) -> QuantileModel:
    model = QuantileModel()
    model.fit([measured(count, 0)])
    return model


def covered(model: CostModel, each: Measured) -> float:
    low, high = model.predict_interval(each.rows)
    return float(np.mean((low <= each.throughput) & (each.throughput <= high)))


def width(model: CostModel) -> float:
    low, high = model.predict_interval(measured(50, 9).rows)
    return float(np.mean(high - low))


def test_the_median_ranks_unseen_rows_and_lies_in_its_interval() -> None:
    model, unseen = fitted(), measured(200, 1)
    assert pair_accuracy(model.predict(unseen.rows), unseen.throughput) > 0.8
    low, high = model.predict_interval(unseen.rows)
    assert (low < model.predict(unseen.rows)).all()
    assert (model.predict(unseen.rows) < high).all()


def test_before_a_round_was_judged_the_rows_that_members_did_not_see_say_how_wide_intervals_are() -> None:
    shares = dict[type[CostModel], list[float]]()
    for kind in (QuantileModel, XGBoostModel):
        for count, seed in ((32, 1), (32, 2), (64, 3), (128, 4), (400, 5)):
            model = kind()
            model.fit([measured(count, seed)])
            shares.setdefault(kind, []).append(covered(model, measured(2000, 99)))
    assert 0.7 < np.mean(shares[QuantileModel]) < 0.9
    assert np.mean(shares[XGBoostModel]) < 0.5, "members that share most rows differ too little"


def test_intervals_are_wider_where_rows_are_less_certain() -> None:
    each = measured(2000, 1)
    low, high = fitted(2000).predict_interval(each.rows)
    noisy = each.rows.features[:, 1] > 0.5
    assert (high - low)[noisy].mean() > 1.15 * (high - low)[~noisy].mean()


@pytest.mark.parametrize("noise", [0.01, 0.2])
def test_rounds_that_are_unlike_what_was_learnt_change_how_wide_intervals_are(noise: float) -> None:
    model, following = fitted(), measured(2000, 99, noise)
    assert not 0.7 < covered(model, following) < 0.9
    for seed in range(ROUNDS):
        each = measured(32, 10 + seed, noise)
        model.note_errors(each.rows, each.throughput)
    assert 0.7 < covered(model, following) < 0.9


def test_errors_of_rounds_outlast_a_fit_and_change_no_score() -> None:
    model, other, wrong = fitted(), fitted(), measured(32, 5, noise=0.3)
    model.note_errors(wrong.rows, wrong.throughput)
    assert width(model) > 2 * width(other)
    scores = [each.predict(measured(50, 9).rows) for each in (model, other)]
    assert np.array_equal(scores[0], scores[1])
    model.fit([measured(400, 0)])
    assert width(model) > 2 * width(other)


def test_only_the_last_rounds_count_in_any_order_within_one() -> None:
    wrong, usual = measured(32, 5, noise=0.3), [measured(32, 20 + seed) for seed in range(ROUNDS)]
    model, other = fitted(), fitted()
    model.note_errors(wrong.rows, wrong.throughput)
    for each in usual:
        model.note_errors(each.rows, each.throughput)
        back = Rows(each.rows.task, each.rows.features[::-1])
        other.note_errors(back, each.throughput[::-1])
    assert width(model) == width(other)


def test_a_loaded_model_has_the_intervals_of_the_saved_one(tmp_path: Path) -> None:
    model, loaded, wrong = fitted(), QuantileModel(), measured(32, 5, noise=0.3)
    model.note_errors(wrong.rows, wrong.throughput)
    model.save(tmp_path / "model")
    loaded.load(tmp_path / "model")
    assert width(loaded) == width(model)
    with pytest.raises(ValueError, match="xgboost model"):
        XGBoostModel().load(tmp_path / "model")


def test_other_models_have_intervals_as_if_errors_were_normal() -> None:
    model, rows = XGBoostModel(), measured(50, 9).rows
    model.fit([measured(400, 0)])
    scores, spread = model.predict_with_spread(rows)
    np.testing.assert_allclose(model.predict_interval(rows), (scores - REACH * spread, scores + REACH * spread))
    before = model.predict_interval(rows)
    model.note_errors(rows, np.zeros(50))
    np.testing.assert_array_equal(model.predict_interval(rows), before)
