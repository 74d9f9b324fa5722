"""Small trees learn from a few programs how fast a variant is."""

from __future__ import annotations

import numpy as np
import pytest

from mlir_sched.models.variant_model import LEAST_ROWS, VariantModel

SHARES = np.linspace(0.0, 1.0, 12)
FEATURES = np.stack([np.full(12, 3.0), SHARES], axis=1)


def fitted(**ratios: np.ndarray) -> VariantModel:
    model = VariantModel()
    model.fit(FEATURES, ratios)
    return model


def test_a_variant_is_as_fast_as_in_programs_of_its_kind() -> None:
    model = fitted(layout=np.where(SHARES > 0.5, 4.0, 0.5), other=np.full(12, 1.1))
    assert model.predict(np.array([3.0, 0.9])) == pytest.approx({"layout": 4.0, "other": 1.1}, rel=1e-5)
    assert model.predict(np.array([3.0, 0.2])) == pytest.approx({"layout": 0.5, "other": 1.1}, rel=1e-5)


def test_programs_in_which_a_variant_was_not_measured_say_nothing_of_it() -> None:
    ratios = np.where(np.arange(12) % 2, np.nan, 2.0)
    few = np.where(np.arange(12) < LEAST_ROWS - 1, 2.0, np.nan)
    model = fitted(some=ratios, few=few)
    assert model.predict(np.array([3.0, 0.5])) == pytest.approx({"some": 2.0}, rel=1e-5)


def test_a_number_that_is_not_known_of_a_program_is_no_obstacle() -> None:
    model = fitted(layout=np.where(SHARES > 0.5, 4.0, 0.5))
    assert set(model.predict(np.array([np.nan, np.nan]))) == {"layout"}


def test_a_model_without_programs_predicts_nothing() -> None:
    model = VariantModel()
    model.fit(np.array([]), {"layout": np.array([])})
    assert model.predict(np.array([0.0])) == {}


def test_a_variant_is_expected_to_be_as_fast_as_where_it_works_times_the_chance_that_it_does() -> None:
    model = fitted(layout=np.where(SHARES > 0.5, 4.0, 0.0), other=np.zeros(12), half=np.tile([2.0, 0.0], 6))
    works = model.predict(np.array([3.0, 0.9]))
    assert works["layout"] == pytest.approx(4.0, rel=1e-5)
    assert works["other"] == 0.0
    assert 0.5 < works["half"] < 1.5, "it works in every second program"
    assert model.predict(np.array([3.0, 0.2]))["layout"] == pytest.approx(0.0, abs=1e-6)


def test_a_variant_that_failed_in_few_programs_has_no_tree_either() -> None:
    few = np.where(np.arange(12) < LEAST_ROWS - 1, 0.0, np.nan)
    assert fitted(few=few).predict(np.array([3.0, 0.5])) == {}
