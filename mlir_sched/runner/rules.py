"""How near a result must be to the reference, derived from what the program computes.

Two schedules of one program differ in the order of additions and in whether a multiply and an add are fused. On
small integers whose partial sums all fit the significand no order rounds, so results must be equal. On other inputs
they differ by rounding, and the tolerance bounds that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from mlir_sched.payload import Dispatch, LinalgOp, OpKind, TensorSpec
from mlir_sched.runner.verify import DTYPES, Check, InputKind, IntegerRange, Rule

SIGNIFICAND_BITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
"""Integers up to 2 to this power are exact in the type (IEEE 754; bfloat16 has 8)."""

SAFETY = 4.0
"""Factor on the probabilistic bound: a deviation of about 5.5 sigma (the largest of 10^7 elements) of the difference
of two results (times the square root of 2), in machine epsilons, which are 2 unit roundoffs."""

MATH_WEIGHT = 8.0
"""Machine epsilons allowed for one call of a ``math`` function: polynomial approximations are good to a few ulp."""

MODEL_TERMS = 2**16
"""Least length of reduction assumed for a whole model: its dispatches follow each other."""

STAGNATION = 2.0**-5
"""Terms times unit roundoff (2^19 terms in f32) from which rounding errors of one long sum have one direction: small
terms fall below the roundoff of the sum so far, so the probabilistic bound does not hold."""

BIAS = 2.0**-3
"""Share of the bound that always holds, terms times unit roundoff, that is then allowed. One after the other, 2^20 to
2^24 squares of normal random numbers summed in f32 were 0.05 to 2.8 % off, a hundredth to a thirty-fifth of it."""

BOUNDS = (8, 4, 3, 2, 1)
"""Magnitudes tried for exact integer inputs, largest first."""

FULL_RANGE = 127
"""Magnitude for arithmetic that is exact whatever overflows: bytes as large as they come, so that saturation shows."""

_MULTIPLIES = frozenset({"mulf", "fma"})
_ADDS = frozenset({"addf", "subf", "fma"})
_EXACT = _MULTIPLIES | _ADDS | {
    "maximumf", "minimumf", "maxnumf", "minnumf", "cmpf", "negf", "absf", "select", "extf", "truncf", "sitofp",
    "uitofp", "fptosi", "fptoui", "constant", "index_cast", "index",
}  # fmt: skip
_MODULAR = frozenset({"extsi", "extui", "trunci", "muli", "addi", "subi"})
_INDIRECT = frozenset({"extract", "load", "gather"})


def rule_for_dispatch(dispatch: Dispatch) -> Rule:
    """Return the checks for one dispatch: exact ones when its arithmetic allows, and floats with a tolerance."""
    tolerance = dispatch_tolerance(dispatch)
    bound = exact_bound(dispatch)
    signed = not _reads_indirectly(dispatch)
    if bound == 0:
        return Rule(
            (
                Check(InputKind.RANDOM, 1, signed_integers=signed, tolerance=tolerance),
                Check(InputKind.POSITIVE, 2, signed_integers=signed, tolerance=tolerance),
            )
        )
    return Rule(
        (
            Check(InputKind.EXACT, 1, bound=bound, signed_integers=signed, inexact_tolerance=tolerance),
            Check(InputKind.RANDOM, 2, bound=bound, signed_integers=signed, tolerance=tolerance),
        )
    )


def rule_for_model(
    outputs: Sequence[TensorSpec],
    dispatches: Iterable[Dispatch] = (),
    *,
    integer_ranges: tuple[IntegerRange | None, ...] | None = None,
) -> Rule:
    """Return the checks for a whole program.

    Args:
        outputs: What the program returns.
        dispatches: What the program consists of.
        integer_ranges: See :class:`Check`: what integer inputs may hold, by position of the input. Where that is not
            known, they are 0 or 1, as any of them may be an index.
    """
    epsilon = max((_epsilon(spec.element_type) for spec in outputs), default=0.0)
    terms = max((_reduction_length(op) for dispatch in dispatches for op in dispatch.ops), default=0)
    tolerance = SAFETY * epsilon * _sum_terms(max(terms, MODEL_TERMS), epsilon)
    kinds = ((InputKind.RANDOM, 1), (InputKind.POSITIVE, 2))
    return Rule(
        tuple(
            Check(kind, seed, bound=1, signed_integers=False, integer_ranges=integer_ranges, tolerance=tolerance)
            for kind, seed in kinds
        )
    )


def dispatch_tolerance(dispatch: Dispatch) -> float:
    """Return the allowed difference relative to the magnitude of the result; 0 when all arithmetic is on integers.

    For each op with reduction length ``n``, a body of ``s`` scalar ops and ``c`` calls of math functions:
    ``SAFETY * epsilon * (sqrt(n) + s + MATH_WEIGHT * c)``; the terms of a dispatch's ops add up. For very long sums
    (:data:`STAGNATION`) ``BIAS * n * epsilon / 2`` takes the place of the first term where it is larger.

    Source: Higham & Mary, "A New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41
    (2019): rounding errors of a sum of n terms stay below lambda * sqrt(n) * u with a probability that lambda sets.
    """
    return SAFETY * sum(_epsilon(_type(op)) * _rounding_terms(op) for op in dispatch.ops if op.kind != OpKind.FILL)


def _rounding_terms(op: LinalgOp) -> float:
    calls = sum(name.startswith("math.") for name in op.body)
    return _sum_terms(_reduction_length(op), _epsilon(_type(op))) + len(op.body) + MATH_WEIGHT * calls


def _sum_terms(terms: int, epsilon: float) -> float:
    roundoff = epsilon / 2
    stagnating = terms * BIAS / (2 * SAFETY) if terms * roundoff > STAGNATION else 0.0
    return max(math.sqrt(terms), stagnating)


def exact_bound(dispatch: Dispatch) -> int:
    """Return the largest magnitude of integer inputs for which every order of evaluation is exact; 0 when none is."""
    if all(op.kind == OpKind.FILL or (op.body and _MODULAR.issuperset(map(_short, op.body))) for op in dispatch.ops):
        return FULL_RANGE
    if not all(_is_exact(op) for op in dispatch.ops):
        return 0
    return next((bound for bound in BOUNDS if _stays_exact(dispatch, bound)), 0)


def _stays_exact(dispatch: Dispatch, bound: int) -> bool:
    magnitudes: list[int] = []
    for op in dispatch.ops:
        read = [magnitudes[o.producer] if o.producer is not None else bound for o in (*op.inputs, *op.outputs)]
        magnitudes.append(_magnitude(op, max(read, default=bound)))
        if _type(op) in SIGNIFICAND_BITS and magnitudes[-1] > 2 ** SIGNIFICAND_BITS[_type(op)]:
            return False
    return True


def _magnitude(op: LinalgOp, largest_read: int) -> int:
    """Bound the values an op makes: products of what it reads, summed over its reductions and additions."""
    if op.kind == OpKind.FILL:
        return largest_read
    names = [_short(name) for name in op.body]
    product = largest_read ** (1 + sum(name in _MULTIPLIES for name in names))
    additions = sum(name in _ADDS for name in names)
    return int(product * (_reduction_length(op) + additions)) if additions else product


def _is_exact(op: LinalgOp) -> bool:
    """Say whether integers stay integers: integer arithmetic (names end in i) or the float ops that keep them."""
    return all(_short(name) in _EXACT or _short(name).endswith("i") for name in op.body)


def _reads_indirectly(dispatch: Dispatch) -> bool:
    names = [name for op in dispatch.ops for name in op.body] + list(dispatch.other_ops)
    return any(_short(name) in _INDIRECT for name in names)


def _reduction_length(op: LinalgOp) -> int:
    """Return how many terms one result sums; where the loops are unknown, all that the op reads."""
    if op.kind == OpKind.OTHER:
        return max(operand.tensor.elements for operand in (*op.inputs, *op.outputs))
    return math.prod(op.extents[dim] for dim in op.reduction_dims)


def _type(op: LinalgOp) -> str:
    return op.outputs[0].tensor.element_type


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _epsilon(element_type: str) -> float:
    if element_type not in SIGNIFICAND_BITS:
        return 0.0 if element_type in DTYPES else 1.0
    return 2.0 ** (1 - SIGNIFICAND_BITS[element_type])
