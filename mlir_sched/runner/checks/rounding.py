"""The difference that rounding alone may make between two right programs, from types and lengths of sums."""

import math
from collections.abc import Collection, Iterable

from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.runner.checks.exactness import (
    SIGNIFICAND_BITS,
    computing_bits,
    has_random_signs,
    reduction_length,
    short,
)
from mlir_sched.runner.checks.ties import largest_magnitude, layered_share
from mlir_sched.tensors.element_types import DTYPES

SAFETY = 4.0
"""Factor on the probabilistic bound: about 5.5 sigma (the largest deviation of 10^7 elements), times the square root of
2 (for the difference of two results), divided by 2 (a machine epsilon is 2 unit roundoffs)."""

MATH_WEIGHT = 8.0
"""Machine epsilons allowed for one call of a ``math`` function: polynomial approximations are good to a few ulp."""

WIDENED_MATH_WEIGHT = 1.0
"""The same for types narrower than f32, for which such a function is computed in f32 and rounded once."""

STAGNATION = 2.0**-5
"""Terms times unit roundoff (2^19 terms in f32) from which the rounding errors of a sum all have one direction: small
terms fall below the roundoff of the sum so far, so the probabilistic bound does not hold."""

BIAS = 2.0**-3
"""Share of the worst-case bound (terms times unit roundoff) that such sums may be off: sequential f32 sums
of 2^20 to 2^24 squares of normal random numbers are off by less than a thirtieth of that bound."""

LARGEST_TOLERANCE = 0.5
"""Upper limit of all tolerances, relative to the larger of the element and the root mean square of the reference: zeros
in place of the results are off by 1, the results of another tile by 1.4 in the root mean square."""

_EXACT_MATH = frozenset({"roundeven", "round", "floor", "ceil", "trunc", "absf"})
"""Functions of ``math`` that round to whole numbers, or not at all."""

_TO_INTEGERS = frozenset({"fptosi", "fptoui"})

MODEL_ROUNDINGS = {"f64": 2.0**8, "f32": 2.0**8, "f16": 4.0, "bf16": 4.0}
"""Least square root of the number of roundings that is assumed for a whole program, a chain of dispatches."""

UNKNOWN_ROUNDINGS = 2.0**6
"""The same where nothing is known of the program: a sum of 4096 terms in the type of the result."""
LARGEST = {"f16": 65504.0}
"""Largest numbers of types that sums of ordinary numbers exceed (IEEE 754)."""


def dispatch_tolerances(dispatch: Dispatch, exact: Collection[int] = ()) -> dict[str, float]:
    """Return the allowed relative difference by element type of the result; 0 when all arithmetic is on integers.

    For integers it is that of the values that are rounded to them (``ties.py``); 0 where they are not.

    For each op with reduction length ``n``, a body of ``s`` scalar ops and ``c`` calls of math functions:
    ``SAFETY * epsilon * (sqrt(n) + s + MATH_WEIGHT * c)``; the terms of the ops that a result depends on add up, to
    :data:`LARGEST_TOLERANCE` at most. For very long sums (:data:`STAGNATION`) ``BIAS * n * epsilon / 2`` takes the
    place of the first term where it is larger.

    Args:
        exact: Indices of ops that round nothing.

    Source: Higham & Mary, "A New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41
    (2019): rounding errors of a sum of n terms stay below lambda * sqrt(n) * u with a probability that lambda sets.
    """
    behind: dict[int, frozenset[int]] = {}
    for op in dispatch.ops:
        behind[op.index] = frozenset({op.index}).union(*(behind[producer] for producer in _producers(op)))
    own = {op.index: 0.0 if op.index in exact else _rounding(op) for op in dispatch.ops}
    tolerances: dict[str, float] = {}
    for index in dispatch.results:
        allowed = min(SAFETY * sum(own[i] for i in sorted(behind[index])), LARGEST_TOLERANCE)
        rounded = _is_rounded(dispatch, dispatch.ops[index])
        for operand in dispatch.ops[index].outputs:
            kind = operand.tensor.element_type
            differing = allowed if rounded or kind in SIGNIFICAND_BITS else 0.0
            tolerances[kind] = max(tolerances.get(kind, 0.0), differing)
    return tolerances


def model_tolerance(element_type: str, dispatches: Iterable[Dispatch]) -> float:
    """Return the allowed relative difference of an output of a whole program.

    For integers it is that of the values that are rounded to them, as of :func:`dispatch_tolerances`: so large that it
    allows for the integers that differ in the layers before, too.

    The roundings of all ops are taken as independent, so their squares add up. Roundings in types narrower than the
    output count only if some op widens a type: otherwise no output of a wider type depends on them.
    """
    known = list(dispatches)
    if element_type not in SIGNIFICAND_BITS and element_type in DTYPES:
        return _integer_tolerance(element_type, known)
    epsilon = machine_epsilon(element_type)
    ops = [op for dispatch in known for op in dispatch.ops]
    if not ops:
        return min(SAFETY * epsilon * max(UNKNOWN_ROUNDINGS, MODEL_ROUNDINGS.get(element_type, 1.0)), LARGEST_TOLERANCE)
    widened = any(short(name) == "extf" for op in ops for name in op.body)
    counted = [op for op in ops if widened or result_epsilon(op) <= epsilon]
    roundings = math.sqrt(sum(_rounding(op) ** 2 for op in counted))
    return min(SAFETY * max(epsilon * MODEL_ROUNDINGS.get(element_type, 1.0), roundings), LARGEST_TOLERANCE)


def _integer_tolerance(element_type: str, dispatches: Iterable[Dispatch]) -> float:
    """Return the tolerance of integers that a program returns, of a byte or less; wider ones have to be equal."""
    magnitude = largest_magnitude(element_type)
    if not magnitude:
        return 0.0
    layers = [
        (magnitude * own, max(reduction_length(op) for op in dispatch.ops))
        for dispatch in dispatches
        if (own := dispatch_tolerances(dispatch).get(element_type, 0.0))
    ]
    return layered_share(layers) / magnitude


def machine_epsilon(element_type: str) -> float:
    """Return the distance from 1 to the next larger number; 0 for integers, 1 for types that are not known."""
    if element_type not in SIGNIFICAND_BITS:
        return 0.0 if element_type in DTYPES else 1.0
    return 2.0 ** (1 - SIGNIFICAND_BITS[element_type])


def result_epsilon(op: LinalgOp) -> float:
    """Return the machine epsilon of the narrowest result of an op."""
    return max(machine_epsilon(operand.tensor.element_type) for operand in op.outputs)


def _is_rounded(dispatch: Dispatch, op: LinalgOp) -> bool:
    """Say whether an op's results are integers that were rounded from floating point, and then added to at most."""
    if op.reduction_dims:
        return False
    return _rounds_to_integers(op) or any(_is_rounded(dispatch, dispatch.ops[i]) for i in _producers(op))


def _rounds_to_integers(op: LinalgOp) -> bool:
    return any(short(name) in _TO_INTEGERS for name in op.body)


def _producers(op: LinalgOp) -> Iterable[int]:
    return {operand.producer for operand in (*op.inputs, *op.outputs) if operand.producer is not None}


def _rounding(op: LinalgOp) -> float:
    """Return the relative rounding of an op, without the factor for safety."""
    if op.kind == OpKind.FILL:
        return 0.0
    bits = _bits_before_rounding(op) if _rounds_to_integers(op) else computing_bits(op)
    epsilon = result_epsilon(op) if bits is None else 2.0 ** (1 - bits)
    calls = sum(name.startswith("math.") and short(name) not in _EXACT_MATH for name in op.body)
    weight = MATH_WEIGHT if epsilon <= machine_epsilon("f32") else WIDENED_MATH_WEIGHT
    own = epsilon * (_sum_terms(reduction_length(op), epsilon) + len(op.body) + weight * calls)
    return own + (result_epsilon(op) if result_epsilon(op) > epsilon else 0.0)


def _bits_before_rounding(op: LinalgOp) -> int:
    """Return the significand bits of what an op computes before it rounds to integers: of its floats, or of f32."""
    widened = any(short(name) == "extf" for name in op.body)
    read = [SIGNIFICAND_BITS[o.tensor.element_type] for o in op.inputs if o.tensor.element_type in SIGNIFICAND_BITS]
    return SIGNIFICAND_BITS["f32"] if widened or not read else min(read)


def _sum_terms(terms: int, epsilon: float) -> float:
    roundoff = epsilon / 2
    stagnating = terms * BIAS / (2 * SAFETY) if terms * roundoff > STAGNATION else 0.0
    return max(math.sqrt(terms), stagnating)


def why_sums_differ(dispatches: Iterable[Dispatch]) -> str:
    """Return what is to be said of the longest sum in f16 or bf16 whose result hangs on the order of its additions.

    Two right programs need not agree on such sums: a wrong result may be nobody's fault.

    A sum of ``n`` terms of one sign and of like magnitude stops growing at ``2^(p + 1)`` terms, with ``p`` bits in the
    significand: a term is less than half of the distance between two numbers then. Sums of products of two inputs are
    not meant, as their signs are as good as random.
    """
    found = [
        (reduction_length(op), op.outputs[0].tensor.element_type)
        for dispatch in dispatches
        for op in dispatch.ops
        if _stops_growing(op)
    ]
    if not found:
        return ""
    terms, kind = max(found)
    overflow = f"overflow {kind} (at most {LARGEST[kind]:.0f}) or " if terms > LARGEST.get(kind, terms) else ""
    return f"sums of {terms} terms in {kind} {overflow}stop growing: their results hang on the order of additions"


def _stops_growing(op: LinalgOp) -> bool:
    kind = op.outputs[0].tensor.element_type
    if kind not in ("f16", "bf16") or op.kind == OpKind.FILL or not op.reduces or not _adds(op) or has_random_signs(op):
        return False
    return reduction_length(op) > 1 << (SIGNIFICAND_BITS[kind] + 1)


def _adds(op: LinalgOp) -> bool:
    return any(name in ("arith.addf", "math.fma") for name in op.body)
