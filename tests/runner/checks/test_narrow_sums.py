"""Sums in narrow floats that overflow or stop growing are named where results differ."""

from __future__ import annotations

import pytest
from rule_ops import dispatch, matmul

from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.runner.checks.numeric_checks import checks_for_dispatch, checks_for_model
from mlir_sched.runner.checks.rounding import why_sums_differ


def squares(terms: int, kind: str) -> Dispatch:
    """Return a sum of the squares of a row."""
    op = matmul(terms, kind)
    fields = {name: getattr(op, name) for name in LinalgOp.__dataclass_fields__}
    return dispatch(LinalgOp(**{**fields, "kind": OpKind.REDUCTION, "inputs": op.inputs[:1]}))


@pytest.mark.parametrize(
    ("terms", "kind", "expected"),
    [
        (131_072, "f16", "sums of 131072 terms in f16 overflow f16 (at most 65504) or stop growing"),
        (10_000, "f16", "sums of 10000 terms in f16 stop growing"),
        (1_000, "bf16", "sums of 1000 terms in bf16 stop growing"),
        (1_000, "f16", ""),
        (131_072, "f32", ""),
    ],
)
def test_a_sum_that_its_type_cannot_hold_is_named(terms: int, kind: str, expected: str) -> None:
    found = why_sums_differ([squares(64, "f32"), squares(terms, kind)])
    assert found.startswith(expected)
    assert bool(found) == bool(expected)
    assert {check.doubt for check in checks_for_dispatch(squares(terms, kind))} == {found}
    assert {check.doubt for check in checks_for_model((), [squares(terms, kind)])} == {found}


def test_sums_of_products_of_two_inputs_grow_with_the_root_of_their_length() -> None:
    assert why_sums_differ([dispatch(matmul(131_072, "f16"))]) == ""


@pytest.mark.parametrize(("kind", "most"), [("f16", 4096), ("bf16", 512)])
def test_a_sum_grows_until_a_term_is_less_than_half_of_the_distance_between_two_numbers(kind: str, most: int) -> None:
    assert why_sums_differ([squares(most, kind)]) == ""
    assert why_sums_differ([squares(most + 1, kind)]).startswith(f"sums of {most + 1} terms in {kind} stop growing")
