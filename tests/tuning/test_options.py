"""The options of a run: what tells ways to search apart in the keys that stores hold."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from mlir_sched.errors import UserError
from mlir_sched.search import EvolutionaryOptions
from mlir_sched.tuning.options import TuneOptions

DEFAULT = (
    "EvolutionaryOptions(population=128, measured_share=0.2, generations=4, mutation_chance=0.85, "
    "crossover_chance=0.0, random_share=0.05, exploration=0.5, batch_pool=3, first_pool=1, max_replays=3000, "
    "mutation_weights=mappingproxy({'perfect_tile': 1.0, 'compute_location': 0.3, 'categorical': 0.3, "
    "'int_range': 0.3, 'power_of_two': 0.3, 'permutation': 0.3}))"
)
"""Runs by this text are in users' stores: another text for the same search makes every interrupted run a new one."""


def test_the_key_of_the_default_search_is_the_one_that_stores_hold() -> None:
    assert TuneOptions().search_key() == (0, 8, "evolutionary", DEFAULT)


@pytest.mark.parametrize("name", [field.name for field in fields(EvolutionaryOptions)])
def test_every_option_of_the_evolution_makes_another_key(name: str) -> None:
    changed: Any = {"a": 0.5} if name == "mutation_weights" else 77
    assert replace(EvolutionaryOptions(), **{name: changed}).key() != DEFAULT


def test_values_make_another_run_but_no_other_search() -> None:
    plain, given = TuneOptions(), TuneOptions(inputs=[np.ones(3, np.float32)])
    changed = TuneOptions(inputs=[np.ones(3, np.float32)], reference=["3xf32=2"])
    keys = [repr(options.values_key()) for options in (plain, given, changed)]
    assert (keys[0], len(set(keys))) == ("[]", 3), "runs without values keep the keys that stores hold"
    assert given.search_key() == plain.search_key()
    assert replace(given, threads=1).values == given.values
    assert TuneOptions(inputs=["3xf32=1"]) == given


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("seed", value) for value in (-1, 2**63, 0.5)),
        *(("minutes", value) for value in (float("inf"), float("nan"), 0.0, -1.0, 1e300)),
        *(("trials", value) for value in (0, -1, 10**30, 1.5)),
        *(("round_size", value) for value in (0, 10**9)),
        ("threads", 0),
    ],
)
def test_a_number_out_of_its_range_is_refused_with_its_name(name: str, value: Any) -> None:
    with pytest.raises(UserError, match=name):
        replace(TuneOptions(), **{name: value})
