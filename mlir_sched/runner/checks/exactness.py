"""Inputs of integers on which a dispatch rounds nothing, in any order of its additions.

A sum of integers is exact while every partial sum fits the significand of the type that it is kept in. Signs are
random, so partial sums grow with the square root of the number of terms. Where they still grow too large, as long sums
in bf16 do, all but a part of the largest operand is set to 0. A conversion to a narrower type rounds, but it rounds
equal numbers to equal numbers.

Integer arithmetic is exact even where it overflows. Integers that nothing but integer arithmetic reads take all values
of their type, however much of their sums a conversion to floating point rounds: saturation and sign extension show at
the ends of a type only.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from mlir_sched.payload import ELEMENT_BITS, Dispatch, LinalgOp, Operand, OpKind, TensorSpec
from mlir_sched.runner.checks.check import WIDE

SIGNIFICAND_BITS = {
    "f64": 53, "f32": 24, "f16": 11, "bf16": 8, "complex<f32>": 24,
    "f8E4M3FN": 4, "f8E4M3FNUZ": 4, "f8E5M2": 3, "f8E5M2FNUZ": 3,
}  # fmt: skip
"""Integers up to 2 to this power are exact in the type (IEEE 754; bfloat16 has 8, OCP's 8-bit types 4 and 3)."""

BOUNDS = (8, 4, 3, 2, 1)
"""Magnitudes tried for exact integer inputs, largest first."""

MOST_PARTS = 1024
"""Most parts that sparse inputs are divided into."""

INEXACT_CHANCE = 1e-9
"""Accepted probability that some partial sum of an op, in a given order of additions, outgrows its bound."""

_MULTIPLIES = frozenset({"mulf", "fma"})
_ADDS = frozenset({"addf", "subf", "fma"})
_LINEAR = _MULTIPLIES | _ADDS | {"extf", "truncf", "sitofp"}
_EXACT = _LINEAR | {
    "maximumf", "minimumf", "maxnumf", "minnumf", "cmpf", "negf", "absf", "select", "uitofp", "fptosi", "fptoui",
    "constant", "index_cast", "index",
}  # fmt: skip
_CONVERTS = frozenset({"sitofp", "uitofp"})
_UNSIGNED = frozenset({"extui", "uitofp"})


@dataclass(frozen=True)
class ExactInputs:
    """Inputs of integers, and the ops that are exact on them.

    Attributes:
        bound: Largest magnitude of floats, and of integers unless these are whole.
        whole: Whether integers take all values of their type (:data:`.check.WIDE` in types wider than a byte).
        parts: Number of parts of each sparse operand, of which only one is not 0; 1 leaves the operands as they are.
        sparse: The sparse operands.
        ops: Indices of the ops whose results are exact, or rounded once, on these inputs.
        below: Magnitude from which sums and products are rounded in the narrowest type that they are computed in.
    """

    bound: int
    whole: bool = True
    parts: int = 1
    sparse: tuple[TensorSpec, ...] = ()
    ops: frozenset[int] = frozenset()
    below: float = 2.0 ** SIGNIFICAND_BITS["f64"]


@dataclass(frozen=True)
class _Values:
    """Bounds of the values of a tensor: the largest magnitude, and the mean of the squares."""

    magnitude: float
    mean_square: float


@dataclass
class _Trial:
    """Follows the values of a dispatch from integer inputs of one kind, op by op."""

    bound: int
    parts: int
    whole: bool
    unsigned: bool
    made: dict[int, _Values] = field(default_factory=dict)

    def fits(self, ops: Iterable[LinalgOp]) -> bool:
        """Say whether all results, partial sums included, fit the types that they are kept in."""
        for op in ops:
            values = self._result(op)
            self.made[op.index] = values
            bits = computing_bits(op)
            if bits is not None and values.magnitude > 2**bits:
                return False
        return True

    def _read(self, operand: Operand) -> _Values:
        if operand.producer is not None:
            return self.made[operand.producer]
        if operand.tensor.element_type not in SIGNIFICAND_BITS and (self.whole or self.unsigned):
            magnitude = _largest_integer(operand.tensor, self.unsigned)
            return _Values(magnitude, _power(magnitude, 2))
        return _Values(self.bound, (self.bound + 1) * (2 * self.bound + 1) / 6)

    def _result(self, op: LinalgOp) -> _Values:
        read = [self._read(operand) for operand in (*op.inputs, *op.outputs)]
        largest = max((values.magnitude for values in read), default=self.bound)
        if op.kind == OpKind.FILL:
            return _Values(largest, _power(largest, 2))
        names = [short(name) for name in op.body]
        product = _power(largest, _factors(op))
        additions = sum(name in _ADDS for name in names)
        if not additions:
            return _Values(product, _power(product, 2))
        total = min(product * reduction_length(op), self._sum(op, product)) + product * additions
        return _Values(total, _power(total, 2))

    def _sum(self, op: LinalgOp, product: float) -> float:
        """Bound the sums of products of inputs by their signs and by how many of them are not 0."""
        if not _sums_products(op):
            return math.inf
        parts = self.parts if _largest_loaded(op) else 1
        if has_random_signs(op):
            return _random_sum(op, product, math.prod(self._read(o).mean_square for o in op.inputs) / parts)
        return product * (reduction_length(op) / parts + _random_sum(op, 1.0, 1 / parts))


def exact_inputs(dispatch: Dispatch) -> ExactInputs:
    """Return the inputs on which as many ops as possible are exact: the largest integers, with the fewest zeros.

    Only ops whose arithmetic keeps integers and that read nothing but inputs and results of such ops can be exact.
    """
    ops = _keeping_integers(dispatch)
    unsigned = any(short(name) in _UNSIGNED for op in dispatch.ops for name in op.body)
    choices = _choices(always_whole=not any(map(_converts_inputs, dispatch.ops)))
    while ops:
        for bound, parts, whole in choices:
            if _Trial(bound, parts, whole, unsigned).fits(ops):
                return _described(ops, bound, parts, whole)
        ops.pop()
    return ExactInputs(1)


def _choices(always_whole: bool) -> list[tuple[int, int, bool]]:
    """Return the bounds, numbers of parts and whole integers to try, in order."""
    dense = [(bound, 1, whole) for whole in ((True,) if always_whole else (True, False)) for bound in BOUNDS]
    return dense + [(1, 2**i, always_whole) for i in range(1, MOST_PARTS.bit_length())]


def _converts_inputs(op: LinalgOp) -> bool:
    """Say whether an op converts integers that it loads to floating point."""
    loads = any(o.producer is None and o.tensor.element_type not in SIGNIFICAND_BITS for o in op.inputs)
    return loads and any(short(name) in _CONVERTS for name in op.body)


def _largest_integer(tensor: TensorSpec, unsigned: bool) -> float:
    """Return the largest magnitude of whole integers; read unsigned, small negative numbers are large ones."""
    if tensor.element_type == "i1":
        return 1.0
    bits = ELEMENT_BITS[tensor.element_type]
    return 2.0**bits if unsigned else min(2.0 ** (bits - 1), WIDE)


def _described(ops: list[LinalgOp], bound: int, parts: int, whole: bool) -> ExactInputs:
    operands = [largest for op in ops if op.reduction_dims and (largest := _largest_loaded(op))]
    computed = [bits for op in ops if (bits := computing_bits(op)) is not None and _rounds(op)]
    return ExactInputs(
        bound,
        whole,
        parts,
        tuple(dict.fromkeys(operand.tensor for operand in operands)) if parts > 1 else (),
        frozenset(op.index for op in ops),
        2.0 ** min(computed, default=SIGNIFICAND_BITS["f64"]),
    )


def checks_to_cover(dispatch: Dispatch, exact: ExactInputs) -> int:
    """Return how many parts have to be used, each in a check of its own, so that every index of every sum counts.

    The parts used hold 16 elements or more per index of a sum, on average, but no more than 8 are used: an index
    without any element is then practically impossible.
    """
    rows = min(
        (
            largest.tensor.elements / max(1, reduction_length(op))
            for op in dispatch.ops
            if op.index in exact.ops and op.reduction_dims and (largest := _largest_loaded(op))
        ),
        default=math.inf,
    )
    return max(1, min(exact.parts, 8, math.ceil(16 * exact.parts / max(1.0, rows))))


def _sums_products(op: LinalgOp) -> bool:
    """Say whether an op sums products or powers of its inputs, of which at least one is loaded."""
    names = [short(name) for name in op.body]
    linear = bool(op.reduction_dims) and _LINEAR.issuperset(names) and sum(name in _ADDS for name in names) == 1
    return linear and _factors(op) >= len(op.inputs) and any(operand.producer is None for operand in op.inputs)


def has_random_signs(op: LinalgOp) -> bool:
    """Say whether an op sums inputs, or products of two different inputs: terms of random sign."""
    return _sums_products(op) and _factors(op) == len(op.inputs) <= 2


def _rounds(op: LinalgOp) -> bool:
    return any(short(name) in _MULTIPLIES | _ADDS for name in op.body)


def _factors(op: LinalgOp) -> int:
    return 1 + sum(short(name) in _MULTIPLIES for name in op.body)


def _random_sum(op: LinalgOp, largest: float, mean_square: float) -> float:
    """Return a bound on the partial sums of independent terms with random signs.

    Bernstein's inequality: the sum of ``n`` terms of magnitude up to ``M`` and mean square ``v`` exceeds ``t`` with a
    probability below ``2 exp(-t^2 / 2 / (n v + M t / 3))``. The accepted chance
    (:data:`INEXACT_CHANCE`) is shared by all partial sums of the op.

    Source: Boucheron, Lugosi & Massart, "Concentration Inequalities" (2013), corollary 2.11.
    """
    exponent = math.log(2 * op.iterations / INEXACT_CHANCE)
    linear = exponent * largest / 3
    return linear + math.sqrt(linear**2 + 2 * exponent * reduction_length(op) * mean_square)


def _power(base: float, exponent: int) -> float:
    try:
        return float(base) ** exponent
    except OverflowError:
        return math.inf


def _largest_loaded(op: LinalgOp) -> Operand | None:
    """Return the largest input of floats that the op loads: the one with the most elements per index of its sums."""
    loaded = [o for o in op.inputs if o.producer is None and o.tensor.element_type in SIGNIFICAND_BITS]
    return max(loaded, key=lambda operand: operand.tensor.elements, default=None)


def _keeping_integers(dispatch: Dispatch) -> list[LinalgOp]:
    """Return the ops that make integers from integers and read no results of other ops."""
    keeping: dict[int, LinalgOp] = {}
    for op in dispatch.ops:
        read = {operand.producer for operand in (*op.inputs, *op.outputs) if operand.producer is not None}
        if _keeps_integers(op) and read <= keeping.keys():
            keeping[op.index] = op
    return list(keeping.values())


def _keeps_integers(op: LinalgOp) -> bool:
    """Say whether integers stay integers: integer arithmetic (names end in i) or the float ops that keep them."""
    return all(short(name) in _EXACT or short(name).endswith("i") for name in op.body)


def computing_bits(op: LinalgOp) -> int | None:
    """Return the significand bits of the type that an op computes in, or None for integers.

    Sums are kept in the type of the result. An element-wise body that narrows its result computes in the type before
    the narrowing: the type of its inputs, or f32 where it widens them first.
    """
    made = [SIGNIFICAND_BITS[o.tensor.element_type] for o in op.outputs if o.tensor.element_type in SIGNIFICAND_BITS]
    if not made:
        return None
    names = {short(name) for name in op.body}
    if op.reduction_dims or "truncf" not in names:
        return min(made)
    read = [SIGNIFICAND_BITS[o.tensor.element_type] for o in op.inputs if o.tensor.element_type in SIGNIFICAND_BITS]
    return max([*made, *read, SIGNIFICAND_BITS["f32"] if "extf" in names else 0])


def reduction_length(op: LinalgOp) -> int:
    """Return how many terms one result sums; where a sum's loops are unknown, the size of the largest operand."""
    if op.kind == OpKind.OTHER and op.reduction_dims:
        return max(operand.tensor.elements for operand in (*op.inputs, *op.outputs))
    return math.prod(op.extents[dim] for dim in op.reduction_dims)


def short(name: str) -> str:
    """Return an op's name without its dialect."""
    return name.rpartition(".")[2]
