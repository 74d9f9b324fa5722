"""A program as numbers: where the time of its untuned code goes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from plans import flagged
from replayed_run import TARGET, matmul_dispatch, task_of
from speedups import timing

from mlir_sched.payload import OpKind
from mlir_sched.program.profile import ProgramProfile
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.profile_features import FEATURES, NOT_LINALG, profile_features
from mlir_sched.tasks import Model

PRODUCT, OTHER = (task_of(name, matmul_dispatch(64, 128, 32)) for name in ("product", "other"))
HERE = replace(TARGET, cores=3, l2_bytes=2**20)
MODEL = Model("model.mlir", (), (PRODUCT, replace(OTHER, dispatch=None)), (), weight_bytes=4 * HERE.l2_bytes)
PROFILE = ProgramProfile({"product": 3e-3, "other": 1e-3}, {"product": 1, "other": 1})
BUILT = BuiltVariant(flagged("default"), MODEL, b"", timing(4e-3, 1.0), (), PROFILE)


def test_shares_sizes_and_the_machine_are_numbers_by_name() -> None:
    found = profile_features(BUILT, HERE)
    assert tuple(found) == FEATURES
    assert found[f"share of {OpKind.CONTRACTION}"] == pytest.approx(0.75)
    assert found[f"share of {NOT_LINALG}"] == pytest.approx(0.25)
    assert sum(value for name, value in found.items() if name in FEATURES[:8]) == pytest.approx(1.0)
    assert found["largest product"] == pytest.approx(19.0)
    assert found["largest convolution"] == 0.0
    assert found["weights over L2"] == 2.0
    assert found["threads"] == 3.0


def test_a_program_without_a_profile_has_no_numbers() -> None:
    assert profile_features(replace(BUILT, profile=None), TARGET) == {}


def test_a_machine_whose_cache_is_not_known_is_no_obstacle() -> None:
    assert profile_features(BUILT, replace(TARGET, l2_bytes=0))["weights over L2"] == 0.0
