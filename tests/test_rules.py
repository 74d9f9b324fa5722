import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlir_sched.payload import Dispatch, LinalgOp, LinearExpr, Operand, OpKind, TensorSpec
from mlir_sched.runner.rules import SIGNIFICAND_BITS, dispatch_tolerance, exact_bound, rule_for_dispatch, rule_for_model
from mlir_sched.runner.verify import DTYPES, Check, InputKind, compare, make_inputs


def operand(
    element_type: str, shape: tuple[int, ...], dims: Sequence[int], loops: int, producer: int | None = None
) -> Operand:
    exprs = tuple(LinearExpr(tuple(int(i == dim) for i in range(loops))) for dim in dims)
    return Operand(TensorSpec(shape, element_type), exprs, producer)


def fill(element_type: str, shape: tuple[int, ...]) -> LinalgOp:
    out = operand(element_type, shape, range(len(shape)), len(shape))
    return LinalgOp(0, "linalg.fill", OpKind.FILL, ("parallel",) * len(shape), shape, (), (out,), ())


def matmul(
    k: int,
    element_type: str = "f32",
    accumulator: str | None = None,
    body: tuple[str, ...] = ("arith.mulf", "arith.addf"),
    m: int = 8,
    n: int = 16,
) -> LinalgOp:
    accumulator = accumulator or element_type
    return LinalgOp(
        1,
        "linalg.matmul",
        OpKind.CONTRACTION,
        ("parallel", "parallel", "reduction"),
        (m, n, k),
        (operand(element_type, (m, k), (0, 2), 3), operand(element_type, (k, n), (2, 1), 3)),
        (operand(accumulator, (m, n), (0, 1), 3, producer=0),),
        body,
    )


def epilogue(element_type: str, body: tuple[str, ...], m: int = 8, n: int = 16) -> LinalgOp:
    tensors = operand(element_type, (m, n), (0, 1), 2, producer=1), operand(element_type, (m, n), (0, 1), 2)
    return LinalgOp(2, "linalg.generic", OpKind.ELEMENTWISE, ("parallel",) * 2, (m, n), tensors[:1], tensors[1:], body)


def dispatch(*ops: LinalgOp) -> Dispatch:
    return Dispatch((fill(ops[0].outputs[0].tensor.element_type, ops[0].outputs[0].tensor.shape), *ops), (len(ops),))


def test_contraction_is_checked_exactly_first_and_then_with_floats() -> None:
    rule = rule_for_dispatch(dispatch(matmul(1024), epilogue("f32", ("arith.addf", "arith.maximumf"))))
    assert [check.kind for check in rule.checks] == [InputKind.EXACT, InputKind.RANDOM]
    assert [check.tolerance > 0 for check in rule.checks] == [False, True]


@pytest.mark.parametrize("function", ["math.exp", "arith.divf", "math.rsqrt", "math.tanh"])
def test_functions_that_leave_the_integers_are_checked_with_floats_only(function: str) -> None:
    rule = rule_for_dispatch(dispatch(matmul(64), epilogue("f32", (function,))))
    assert [check.kind for check in rule.checks] == [InputKind.RANDOM, InputKind.POSITIVE]


@pytest.mark.parametrize("element_type", ["f64", "f32", "f16", "bf16"])
@pytest.mark.parametrize("k", [1, 16, 100, 1024, 1 << 20])
def test_exact_inputs_keep_every_partial_sum_exact_in_the_accumulator(element_type: str, k: int) -> None:
    bound = exact_bound(dispatch(matmul(k, element_type)))
    assert bound * bound * k <= 2 ** SIGNIFICAND_BITS[element_type]
    assert bound > 0 or k >= 2 ** (SIGNIFICAND_BITS[element_type] - 1) - 1


def test_wide_accumulators_allow_larger_inputs_than_narrow_ones() -> None:
    body = ("arith.extf", "arith.extf", "arith.mulf", "arith.addf")
    assert exact_bound(dispatch(matmul(256, "bf16", "f32", body))) > exact_bound(dispatch(matmul(256, "bf16")))


def test_chains_multiply_their_magnitudes() -> None:
    first, second = matmul(64), matmul(64)
    chained = LinalgOp(**{**vars_of(second), "index": 2, "inputs": (operand("f32", (8, 64), (0, 2), 3, 1),) * 2})
    assert exact_bound(dispatch(first, chained)) < exact_bound(dispatch(first))


def vars_of(op: LinalgOp) -> dict[str, Any]:
    return {name: getattr(op, name) for name in LinalgOp.__dataclass_fields__}


def test_integer_arithmetic_is_always_exact() -> None:
    rule = rule_for_dispatch(
        dispatch(matmul(1 << 20, "i8", "i32", ("arith.extsi", "arith.extsi", "arith.muli", "arith.addi")))
    )
    assert [check.tolerance for check in rule.checks] == [0.0, 0.0]


def test_integers_that_select_elements_are_not_negative() -> None:
    op = epilogue("f32", ("arith.index_cast", "tensor.extract"))
    assert not any(check.signed_integers for check in rule_for_dispatch(dispatch(matmul(8), op)).checks)


def test_tolerance_grows_with_the_root_of_the_reduction_length() -> None:
    short, long = (dispatch_tolerance(dispatch(matmul(k))) for k in (10_000, 250_000))
    assert long / short == pytest.approx(502 / 102)


def test_tolerance_of_a_very_long_sum_allows_for_terms_below_the_roundoff_of_the_sum() -> None:
    op = matmul(1 << 23)
    values = np.random.default_rng(0).standard_normal(1 << 23, np.float32) ** 2
    serial, exact = np.add.accumulate(values)[-1:], values.sum(dtype=np.float64, keepdims=True).astype(np.float32)
    spec = TensorSpec((1,), "f32")
    for tolerance in (dispatch_tolerance(dispatch(op)), rule_for_model((spec,), [dispatch(op)]).checks[0].tolerance):
        assert compare(serial, exact, spec, tolerance) is None
        assert compare(serial, exact * np.float32(0.9), spec, tolerance) is not None


def test_model_rule_has_no_negative_indices_and_a_tolerance_of_its_widest_epsilon() -> None:
    rule = rule_for_model((TensorSpec((4,), "f32"), TensorSpec((4,), "bf16")))
    assert not any(check.signed_integers for check in rule.checks)
    assert all(check.tolerance > 2.0**-7 for check in rule.checks)


def test_integer_inputs_of_a_model_are_0_or_1_until_their_ranges_are_known() -> None:
    outputs, tokens = (TensorSpec((4,), "f32"),), (TensorSpec((1000,), "i64"),)
    for check in rule_for_model(outputs).checks:
        assert set(make_inputs(tokens, check)[0]) == {0, 1}
    for check in rule_for_model(outputs, integer_ranges=((0, 9),)).checks:
        assert set(make_inputs(tokens, check)[0]) == set(range(10))
    for check in rule_for_model(outputs, integer_ranges=(None,)).checks:
        assert min(make_inputs(tokens, check)[0]) < 0


@pytest.mark.parametrize("element_type", ["f64", "f32", "f16", "bf16"])
@pytest.mark.parametrize("kind", [InputKind.RANDOM, InputKind.POSITIVE])
@pytest.mark.parametrize("k", [64, 1000])
def test_any_order_of_summation_is_within_the_tolerance(element_type: str, kind: InputKind, k: int) -> None:
    """Left to right and pairwise sums, each rounding to the type at every step, are accepted for one another."""
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
    assert compare(serial, halves[:, 0], spec, dispatch_tolerance(dispatch(op))) is None


def test_lower_precision_inside_is_outside_the_tolerance() -> None:
    op = matmul(256)
    lhs, rhs = make_inputs([operand.tensor for operand in op.inputs], Check(InputKind.RANDOM, 5))
    narrow = lhs.astype(ml_dtypes.bfloat16).astype(np.float32) @ rhs.astype(ml_dtypes.bfloat16).astype(np.float32)
    assert compare(lhs @ rhs, narrow, TensorSpec((8, 16), "f32"), dispatch_tolerance(dispatch(op))) is not None


def test_a_dropped_term_is_outside_the_tolerance() -> None:
    op = matmul(4096)
    lhs, rhs = make_inputs([operand.tensor for operand in op.inputs], Check(InputKind.RANDOM, 5))
    short = lhs[:, :-1] @ rhs[:-1]
    tolerance = dispatch_tolerance(dispatch(op))
    assert math.isfinite(tolerance)
    assert compare(lhs @ rhs, short, TensorSpec((8, 16), "f32"), tolerance) is not None
