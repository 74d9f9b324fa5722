"""How many integers that are rounded from floating point may differ between two right programs."""

from __future__ import annotations

import numpy as np
import pytest
from rule_ops import dispatch, epilogue, matmul

from mlir_sched.payload import TensorSpec
from mlir_sched.runner.checks.numeric_checks import checks_for_dispatch
from mlir_sched.runner.checks.rounding import dispatch_tolerances, model_tolerance
from mlir_sched.runner.checks.ties import LARGEST_SHARE, exceeded_by_chance, layered_share, most_differing

REQUANTISE = ("arith.sitofp", "arith.mulf", "math.roundeven", "arith.fptosi")
BYTES = TensorSpec((1000, 1000), "i8")


@pytest.mark.parametrize("mean", [0.01, 1.0, 30.0, 1e4])
def test_the_number_is_hardly_ever_exceeded_and_near_the_mean(mean: float) -> None:
    drawn = np.random.default_rng(0).poisson(mean, 1_000_000)
    most = exceeded_by_chance(mean)
    assert drawn.max() <= most
    assert most <= mean + 9 * np.sqrt(mean) + 14


def test_nothing_may_differ_where_nothing_is_rounded() -> None:
    assert exceeded_by_chance(0.0) == 0
    assert most_differing(np.zeros(100, np.int8), BYTES, 0.0) == 0


@pytest.mark.parametrize("relative", [2.0**-22, 2.0**-20, 2.0**-16])
def test_values_moved_by_their_error_round_to_no_more_other_integers(relative: float) -> None:
    rng = np.random.default_rng(1)
    values = rng.standard_normal(BYTES.shape) * 40
    first, second = (np.rint(values * (1 + relative * rng.uniform(-0.5, 0.5, BYTES.shape))) for _ in range(2))
    assert 0 <= (first != second).sum() <= most_differing(first.astype(np.int8), BYTES, relative) < 0.02 * values.size


def test_integers_that_float_arithmetic_makes_have_a_tolerance_and_others_none() -> None:
    product = matmul(256, "i8", "i32", ("arith.extsi", "arith.extsi", "arith.muli", "arith.addi"))
    rounded = dispatch(product, epilogue("i8", REQUANTISE, read="i32"))
    fixed = dispatch(product, epilogue("i8", ("arith.extsi", "arith.muli", "arith.shrsi", "arith.trunci"), read="i32"))
    assert 0 < dispatch_tolerances(rounded)["i8"] < 1e-5
    assert dispatch_tolerances(fixed) == {"i8": 0.0}
    compared = dispatch(matmul(256), epilogue("i32", ("arith.cmpf", "arith.select"), read="f32"))
    assert dispatch_tolerances(compared) == {"i32": 0.0}
    assert model_tolerance("i8", [fixed, rounded]) > 0 == model_tolerance("i8", [fixed])
    assert model_tolerance("i32", [rounded]) == 0.0
    assert all(check.doubt == "" for check in checks_for_dispatch(rounded))


def test_layers_behind_each_other_differ_in_more_and_never_in_more_than_half() -> None:
    one, two, many = (layered_share([(1e-4, 100)] * layers) for layers in (1, 2, 50))
    assert one == 1e-4
    assert one < two < 0.01
    assert many == LARGEST_SHARE
