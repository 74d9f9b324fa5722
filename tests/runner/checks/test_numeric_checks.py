import math
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from rule_ops import dispatch, epilogue, matmul, operand

from mlir_sched.payload import Dispatch, LinalgOp, OpKind, TensorSpec
from mlir_sched.runner.checks.check import Check, InputKind, Integers
from mlir_sched.runner.checks.exactness import SIGNIFICAND_BITS, checks_to_cover, exact_inputs
from mlir_sched.runner.checks.inputs import make_inputs
from mlir_sched.runner.checks.numeric_checks import checks_for_dispatch, checks_for_model
from mlir_sched.runner.checks.rounding import LARGEST_TOLERANCE, dispatch_tolerances, model_tolerance
from mlir_sched.runner.worker.comparison import compare
from mlir_sched.tensors.element_types import DTYPES


def test_contraction_is_checked_exactly_first_and_then_with_floats() -> None:
    checks = checks_for_dispatch(dispatch(matmul(1024), epilogue("f32", ("arith.addf", "arith.maximumf"))))
    assert [check.kind for check in checks] == [InputKind.EXACT, InputKind.RANDOM]
    equal, near = (check.tolerance_for(TensorSpec((2,), "f32"), np.array([1, 2], np.float32)) for check in checks)
    assert equal == 0.0 < near


@pytest.mark.parametrize("function", ["math.exp", "arith.divf", "math.rsqrt", "math.tanh"])
def test_functions_that_leave_the_integers_have_a_tolerance_and_roots_are_of_positive_numbers(function: str) -> None:
    checks = checks_for_dispatch(dispatch(matmul(64), epilogue("f32", (function,))))
    assert [check.kind for check in checks][:2] == [InputKind.EXACT, InputKind.RANDOM]
    assert (len(checks) == 3) == (function in ("arith.divf", "math.rsqrt"))
    assert all(tolerance.relative > 0 for check in checks for _, tolerance in check.tolerances)


@pytest.mark.parametrize("element_type", ["f64", "f32", "f16", "bf16"])
@pytest.mark.parametrize("k", [1, 16, 100, 1024, 4608])
@pytest.mark.parametrize("seed", range(3))
def test_exact_inputs_keep_every_partial_sum_exact_in_the_accumulator(element_type: str, k: int, seed: int) -> None:
    op = matmul(k, element_type)
    check = replace(checks_for_dispatch(dispatch(op))[0], seed=seed)
    lhs, rhs = (values.astype(np.float64) for values in make_inputs([operand.tensor for operand in op.inputs], check))
    products = lhs[:, :, None] * rhs[None]
    for order in (np.arange(k), np.random.default_rng(seed).permutation(k)):
        assert np.abs(np.cumsum(products[:, order], axis=1)).max() < 2 ** SIGNIFICAND_BITS[element_type]


@pytest.mark.parametrize("element_type", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("k", [64, 1024, 4608])
def test_every_index_of_a_sum_counts_on_exact_inputs(element_type: str, k: int) -> None:
    for m, n in ((1, 1), (1, 64), (32, 64)):
        op = matmul(k, element_type, m=m, n=n)
        counts = np.zeros(k)
        for check in checks_for_dispatch(dispatch(op))[:-1]:
            lhs, rhs = make_inputs([operand.tensor for operand in op.inputs], check)
            counts += (lhs != 0).any(axis=0) & (rhs != 0).any(axis=1)
        assert counts.all()


def test_long_sums_in_bf16_are_sparse_and_others_dense() -> None:
    parts = {
        (kind, k): exact_inputs(dispatch(matmul(k, kind))).parts for kind in ("f32", "f16", "bf16") for k in (512, 4096)
    }
    assert {key for key, number in parts.items() if number > 1} == {("bf16", 4096)}


def test_a_single_long_sum_in_bf16_takes_a_check_per_part() -> None:
    one = dispatch(matmul(4096, "bf16", m=1, n=1))
    assert checks_to_cover(one, exact_inputs(one)) == exact_inputs(one).parts == 8
    many = dispatch(matmul(4096, "bf16", m=64, n=512))
    assert checks_to_cover(many, exact_inputs(many)) == 1


def test_squares_have_no_random_signs() -> None:
    square = LinalgOp(**{**vars_of(matmul(4096, "f16")), "inputs": matmul(4096, "f16").inputs[:1]})
    centred = LinalgOp(**{**vars_of(matmul(4096, "f16")), "body": ("arith.subf", "arith.mulf", "arith.addf")})
    assert exact_inputs(dispatch(square)).parts > 1
    assert matmul(4096, "f16").index not in exact_inputs(dispatch(centred)).ops
    assert exact_inputs(dispatch(matmul(4096, "f16"))).parts == 1


def test_narrowing_the_result_leaves_it_exact() -> None:
    body = ("arith.extf", "arith.extf", "arith.mulf", "arith.addf")
    narrowed = dispatch(matmul(4096, "bf16", "f32", body), epilogue("bf16", ("arith.truncf",), read="f32"))
    exact = exact_inputs(narrowed)
    assert (len(exact.ops), exact.parts, exact.below) == (3, 1, 2.0**24)


def test_what_follows_exact_sums_is_all_that_rounds_on_integers() -> None:
    whole = dispatch(matmul(1024, "bf16", m=64, n=64), epilogue("bf16", ("math.tanh",), 64, 64))
    on_integers, on_floats = checks_for_dispatch(whole)
    (_, tight), (_, wide) = on_integers.tolerances[0], on_floats.tolerances[0]
    assert tight.relative == pytest.approx(4 * 2.0**-7 * 3)
    assert wide.relative == LARGEST_TOLERANCE


def test_wide_accumulators_allow_larger_inputs_than_narrow_ones() -> None:
    body = ("arith.extf", "arith.extf", "arith.mulf", "arith.addf")
    wide, narrow = dispatch(matmul(256, "bf16", "f32", body)), dispatch(matmul(256, "bf16"))
    assert exact_inputs(wide).bound > exact_inputs(narrow).bound


def test_chains_multiply_their_magnitudes() -> None:
    first, second = matmul(512), matmul(512)
    chained = LinalgOp(**{**vars_of(second), "index": 2, "inputs": (operand("f32", (8, 512), (0, 2), 3, 1),) * 2})
    assert exact_inputs(dispatch(first, chained)).bound < exact_inputs(dispatch(first)).bound


def tolerance_of(tested: Dispatch) -> float:
    return max(dispatch_tolerances(tested).values())


def vars_of(op: LinalgOp) -> dict[str, Any]:
    return {name: getattr(op, name) for name in LinalgOp.__dataclass_fields__}


def test_integer_arithmetic_is_always_exact() -> None:
    checks = checks_for_dispatch(
        dispatch(matmul(1 << 20, "i8", "i32", ("arith.extsi", "arith.extsi", "arith.muli", "arith.addi")))
    )
    assert all(tolerance.relative == 0 for check in checks for _, tolerance in check.tolerances)


def test_integers_that_select_elements_are_not_negative() -> None:
    op = epilogue("f32", ("arith.index_cast", "tensor.extract"))
    checks = checks_for_dispatch(dispatch(matmul(8), op))
    assert {check.integers for check in checks} == {Integers.INDICES}


def test_a_gather_sums_nothing_however_large_its_table_is() -> None:
    table = (operand("f16", (1000, 1000), (0, 1), 2),)
    op = epilogue("f16", ("arith.index_cast", "tensor.extract"))
    gather = Dispatch((LinalgOp(**{**vars_of(op), "index": 0, "kind": OpKind.OTHER, "inputs": table}),), (0,))
    assert tolerance_of(gather) < 0.02


def test_tolerance_grows_with_the_root_of_the_reduction_length() -> None:
    short, long = (tolerance_of(dispatch(matmul(k))) for k in (10_000, 250_000))
    assert long / short == pytest.approx(502 / 102)


def test_tolerance_of_a_very_long_sum_allows_for_terms_below_the_roundoff_of_the_sum() -> None:
    op = matmul(1 << 23)
    values = np.random.default_rng(0).standard_normal(1 << 23, np.float32) ** 2
    serial, exact = np.add.accumulate(values)[-1:], values.sum(dtype=np.float64, keepdims=True).astype(np.float32)
    spec = TensorSpec((1,), "f32")
    for tolerance in (tolerance_of(dispatch(op)), model_tolerance("f32", [dispatch(op)])):
        assert compare(serial, exact, spec, tolerance) is None
        assert compare(serial, exact * np.float32(0.9), spec, tolerance) is not None


def test_model_rule_has_no_negative_indices_and_a_tolerance_per_type() -> None:
    checks = checks_for_model((TensorSpec((4,), "f32"), TensorSpec((4,), "bf16")))
    assert {check.integers for check in checks} == {Integers.INDICES}
    for check in checks:
        assert dict(check.tolerances)["f32"].relative < 2e-4
        assert 0.05 < dict(check.tolerances)["bf16"].relative <= LARGEST_TOLERANCE


def test_narrow_rounding_counts_for_wide_outputs_only_where_something_widens() -> None:
    narrow, wide = dispatch(matmul(64, "bf16")), dispatch(matmul(64))
    body = ("arith.extf", "arith.extf", "arith.mulf", "arith.addf")
    assert model_tolerance("f32", [narrow, wide]) < 2e-4
    assert model_tolerance("f32", [narrow, wide, dispatch(matmul(64, "bf16", "f32", body))]) > 2e-2


def test_programs_of_many_dispatches_are_held_nearer_than_a_wrong_tile_is() -> None:
    body = ("arith.extf", "arith.extf", "arith.mulf", "arith.addf")
    layer = dispatch(matmul(1024, "f16", "f32", body), epilogue("f16", ("arith.truncf",), read="f32"))
    assert model_tolerance("f16", [layer] * 50) < 0.06
    assert model_tolerance("bf16", [dispatch(matmul(4096, "bf16"))] * 50) == LARGEST_TOLERANCE


def test_integer_inputs_of_a_model_are_0_or_1_until_their_ranges_are_known() -> None:
    outputs, tokens = (TensorSpec((4,), "f32"),), (TensorSpec((1000,), "i64"),)
    for check in checks_for_model(outputs):
        assert set(make_inputs(tokens, check)[0]) == {0, 1}
    for check in checks_for_model(outputs, integer_ranges=((0, 9),)):
        assert set(make_inputs(tokens, check)[0]) == set(range(10))
    for check in checks_for_model(outputs, integer_ranges=(None,)):
        assert min(make_inputs(tokens, check)[0]) < 0


@pytest.mark.parametrize("element_type", ["f64", "f32", "f16", "bf16"])
@pytest.mark.parametrize("kind", [InputKind.RANDOM, InputKind.POSITIVE])
@pytest.mark.parametrize("k", [64, 1000])
def test_any_order_of_summation_is_within_the_tolerance(element_type: str, kind: InputKind, k: int) -> None:
    """Left to right and pairwise sums, each rounding to the type at every step, are accepted for one another.

    Long sums of positive numbers in bf16 are not: one after the other they stop growing at half of the result.
    """
    k = min(k, 64) if (element_type, kind) == ("bf16", InputKind.POSITIVE) else k
    op = matmul(k, element_type)
    dtype = DTYPES[element_type]
    lhs, rhs = make_inputs([operand.tensor for operand in op.inputs], Check(kind, 5))
    products = (lhs[:, :, None] * rhs[None, :, :]).astype(dtype)
    serial = np.zeros((8, 16), dtype)
    for i in range(k):
        serial = (serial + products[:, i]).astype(dtype)
    halves = products
    while halves.shape[1] > 1:
        odd = halves[:, halves.shape[1] // 2 * 2 :]
        halves = np.concatenate([(halves[:, :-1:2] + halves[:, 1::2]).astype(dtype), odd], axis=1)
    spec = TensorSpec((8, 16), element_type)
    assert compare(serial, halves[:, 0], spec, tolerance_of(dispatch(op))) is None


def test_lower_precision_inside_is_outside_the_tolerance() -> None:
    op = matmul(256)
    lhs, rhs = make_inputs([operand.tensor for operand in op.inputs], Check(InputKind.RANDOM, 5))
    narrow = lhs.astype(ml_dtypes.bfloat16).astype(np.float32) @ rhs.astype(ml_dtypes.bfloat16).astype(np.float32)
    assert compare(lhs @ rhs, narrow, TensorSpec((8, 16), "f32"), tolerance_of(dispatch(op))) is not None


def test_a_dropped_term_is_outside_the_tolerance() -> None:
    op = matmul(4096)
    lhs, rhs = make_inputs([operand.tensor for operand in op.inputs], Check(InputKind.RANDOM, 5))
    short = lhs[:, :-1] @ rhs[:-1]
    tolerance = tolerance_of(dispatch(op))
    assert math.isfinite(tolerance)
    assert compare(lhs @ rhs, short, TensorSpec((8, 16), "f32"), tolerance) is not None
