"""The options of a run: what tells ways to search apart in the keys that stores hold."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from mlir_sched.errors import UserError
from mlir_sched.sampling import DISTRIBUTIONS
from mlir_sched.search import EvolutionaryOptions
from mlir_sched.search.mutators import MUTATION_WEIGHTS
from mlir_sched.tensors.values import digests_of
from mlir_sched.tuning.options import TuneOptions, share_of

NAMES = [field.name for field in fields(EvolutionaryOptions)]


def test_the_key_of_the_evolution_has_the_options_that_there_are_and_nothing_else() -> None:
    assert json.loads(EvolutionaryOptions().key()).keys() == set(NAMES)
    assert set(MUTATION_WEIGHTS) == set(DISTRIBUTIONS)


@pytest.mark.parametrize("name", NAMES)
def test_every_option_of_the_evolution_makes_another_key(name: str) -> None:
    changed: Any = {"mutation_weights": {"a": 0.5}, "acquisition": "mean"}.get(name, 77)
    assert replace(EvolutionaryOptions(), **{name: changed}).key() != EvolutionaryOptions().key()


def test_equal_options_of_the_evolution_have_equal_keys() -> None:
    turned = EvolutionaryOptions(mutation_weights=dict(reversed([*MUTATION_WEIGHTS.items()])))
    assert turned.key() == EvolutionaryOptions().key()


def test_values_make_another_run_but_no_other_search() -> None:
    plain, given = TuneOptions(), TuneOptions(inputs=[np.ones(3, np.float32)])
    changed = TuneOptions(inputs=[np.ones(3, np.float32)], reference=["3xf32=2"])
    assert len({repr(digests_of(options.values)) for options in (plain, given, changed)}) == 3
    assert given.search_key() == plain.search_key()
    assert replace(given, threads=1).values == given.values
    assert TuneOptions(inputs=["3xf32=1"]) == given


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("seed", value) for value in (-1, 2**63, 0.5)),
        *(("minutes", value) for value in (float("inf"), float("nan"), 0.0, -1.0, 1e300)),
        *(("trials", value) for value in (-1, 10**30, 1.5)),
        *(("round_size", value) for value in (0, 10**9)),
        ("threads", 0),
        *(("max_weights", value) for value in (0.9, float("inf"), float("nan"))),
        *(("stop_below", value) for value in (0.0, 1.0, 50.0, -0.1, float("nan"))),
    ],
)
def test_a_number_out_of_its_range_is_refused_with_its_name(name: str, value: Any) -> None:
    with pytest.raises(UserError, match=name):
        replace(TuneOptions(), **{name: value})


def test_predicted_variants_tell_searches_apart() -> None:
    plain, predicting = TuneOptions(trials=8), TuneOptions(trials=8, predict_variants=True)
    assert plain.search_key() == (0, 8)
    assert predicting.search_key() == (0, 8, "predicted variants")


@pytest.mark.parametrize(("text", "share"), [("0.5%", 0.005), ("0.005", 0.005), ("12 %", 0.12), ("1e-3", 0.001)])
def test_a_share_is_written_in_per_cent_or_as_a_number(text: str, share: float) -> None:
    assert share_of(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["little", "%", "0.5%%", "0,5%", ""])
def test_a_text_that_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="a share is a number such as"):
        share_of(text)


def test_a_bound_of_what_is_expected_makes_another_run_of_the_same_search_and_needs_a_search() -> None:
    plain, bounded = TuneOptions(trials=8), TuneOptions(trials=8, stop_below=0.01)
    assert plain.search_key() == bounded.search_key()
    assert plain.budget_key() == (8, None) != bounded.budget_key()
    with pytest.raises(UserError, match=r"without a search .* stop_below has no use"):
        TuneOptions(trials=0, stop_below=0.01)
