"""Interval arithmetic over integers of a fixed width: the smallest and largest value that an operation can return.

The rules are those of R. E. Moore, "Interval Analysis" (1966), for integers in two's complement: an interval that does
not fit the type of a result becomes the whole range of the type, as some values then wrap around. Intervals hold signed
values; an operation on unsigned ones takes the unsigned view of its operands. An ``i1`` is 0 or 1. The arithmetic is
inclusion-isotone: narrower operands never give a wider result.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from mlir_sched.tasks.worker.integers import bitwise

Interval: TypeAlias = tuple[int, int]
"""Smallest and largest integer, both included."""

EMPTY: Interval = (1, 0)
"""The interval of a value that is never made."""
INDEX_BITS = 64
"""Width of MLIR's ``index`` on all targets."""

Operation: TypeAlias = Callable[[Sequence[Interval], int, int], Interval]
"""Returns a result, given intervals that are not empty, the width of the result, and that of the first operand."""


def type_range(bits: int) -> Interval:
    """Return all values of an integer of some width, as signed ones."""
    return (0, 1) if bits == 1 else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def is_empty(interval: Interval) -> bool:
    """Say whether an interval holds no value."""
    return interval[0] > interval[1]


def is_inside(interval: Interval, other: Interval) -> bool:
    """Say whether all values of an interval lie in another one."""
    return is_empty(interval) or (other[0] <= interval[0] and interval[1] <= other[1])


def union(intervals: Sequence[Interval]) -> Interval:
    """Return the smallest interval around all intervals."""
    held = [interval for interval in intervals if not is_empty(interval)]
    return (min(low for low, _ in held), max(high for _, high in held)) if held else EMPTY


def intersection(first: Interval, second: Interval) -> Interval:
    """Return the values that lie in both intervals."""
    both = max(first[0], second[0]), min(first[1], second[1])
    return EMPTY if is_empty(both) else both


def computed(name: str, operands: Sequence[Interval], bits: int, source_bits: int) -> Interval:
    """Return the interval of an operation's result; all values of its type for an operation without a rule.

    Args:
        name: The operation, e.g. ``arith.addi``.
        source_bits: Width of the first operand.
    """
    if any(is_empty(operand) for operand in operands):
        return EMPTY
    rule = RULES.get(name)
    return rule(operands, bits, source_bits) if rule else type_range(bits)


def compared(predicate: int, first: Interval, second: Interval, bits: int) -> Interval:
    """Return the interval of ``arith.cmpi``: (0, 0), (1, 1), or (0, 1) where both answers are possible.

    Args:
        predicate: Number of the predicate (``arith.cmpi``): eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge.
        bits: Width of both.
    """
    if is_empty(first) or is_empty(second):
        return EMPTY
    may_hold = _may_hold(predicate, first, second, bits)
    may_fail = _may_hold(NEGATED[predicate], first, second, bits)
    return (0 if may_fail else 1), (1 if may_hold else 0)


def narrowed(predicate: int, first: Interval, second: Interval) -> tuple[Interval, Interval]:
    """Return what two compared values can be where a comparison holds; see :func:`compared`.

    An unsigned comparison is used where the value that is to be the greater one is not negative.
    """
    if predicate in _SWAPPED:
        second, first = narrowed(_SWAPPED[predicate], second, first)
        return first, second
    if predicate == EQ:
        both = intersection(first, second)
        return both, both
    if predicate == NE:
        return _without(first, second), _without(second, first)
    strict = int(predicate in (SLT, ULT))
    if predicate in (ULT, ULE):
        if second[0] < 0:
            return first, second
        first = intersection(first, (0, second[1]))
    return intersection(first, (first[0], second[1] - strict)), intersection(second, (first[0] + strict, second[1]))


def _without(interval: Interval, other: Interval) -> Interval:
    """Return an interval without the one value of another interval, where that is at an end."""
    low, high = interval
    if other[0] == other[1]:
        low, high = low + (low == other[0]), high - (high == other[0])
    return EMPTY if low > high else (low, high)


EQ, NE, SLT, SLE, SGT, SGE, ULT, ULE, UGT, UGE = range(10)
NEGATED = {EQ: NE, NE: EQ, SLT: SGE, SGE: SLT, SLE: SGT, SGT: SLE, ULT: UGE, UGE: ULT, ULE: UGT, UGT: ULE}
"""The predicate that holds where another one does not."""
_SWAPPED = {SGT: SLT, SGE: SLE, UGT: ULT, UGE: ULE}


def _may_hold(predicate: int, first: Interval, second: Interval, bits: int) -> bool:
    if predicate in _SWAPPED:
        return _may_hold(_SWAPPED[predicate], second, first, bits)
    if predicate in (ULT, ULE):
        first, second = _unsigned(first, bits), _unsigned(second, bits)
    if predicate == EQ:
        return first[0] <= second[1] and second[0] <= first[1]
    if predicate == NE:
        return not first[0] == first[1] == second[0] == second[1]
    return first[0] < second[1] or (predicate in (SLE, ULE) and first[0] == second[1])


def _wrapped(interval: Interval, bits: int) -> Interval:
    """Return an interval of exact results in two's complement."""
    low, high = interval
    lowest = type_range(bits)[0]
    turns = (low - lowest) >> bits
    if (high - lowest) >> bits != turns:
        return type_range(bits)
    return low - (turns << bits), high - (turns << bits)


def _unsigned(interval: Interval, bits: int) -> Interval:
    """Return the unsigned view of signed values."""
    low, high = interval
    if low >= 0:
        return interval
    return (low + (1 << bits), high + (1 << bits)) if high < 0 else (0, (1 << bits) - 1)


def _around(values: Sequence[int]) -> Interval:
    return min(values), max(values)


def _corners(function: Callable[[int, int], int], first: Interval, second: Interval) -> Interval:
    """Return the interval of a function that is monotone in each operand while the other one is fixed."""
    return _around([function(a, b) for a in first for b in second])


def _arithmetic(function: Callable[[int, int], int]) -> Operation:
    return lambda operands, bits, _: _wrapped(_corners(function, operands[0], operands[1]), bits)


def _nonzero(divisor: Interval) -> list[Interval]:
    """Return the parts of a divisor below and above 0; a division by 0 has no result."""
    parts = [intersection(divisor, (divisor[0], -1)), intersection(divisor, (1, divisor[1]))]
    return [part for part in parts if not is_empty(part)]


def _division(function: Callable[[int, int], int], *, unsigned: bool = False) -> Operation:
    def rule(operands: Sequence[Interval], bits: int, _: int) -> Interval:
        first, second = [_unsigned(each, bits) for each in operands] if unsigned else operands
        exact = union([_corners(function, first, part) for part in _nonzero(second)])
        return exact if is_empty(exact) else _wrapped(exact, bits)

    return rule


def _quotient(dividend: int, divisor: int) -> int:
    """Return a quotient rounded towards 0."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _remainder(first: Interval, second: Interval) -> Interval:
    """Return the interval of remainders, which have the sign of the dividend."""
    parts = _nonzero(second)
    if not parts:
        return EMPTY
    sizes = [abs(end) for part in parts for end in part]
    if max(abs(first[0]), abs(first[1])) < min(sizes):
        return first
    if second[0] == second[1] and len({_quotient(end, second[0]) for end in first}) == 1:
        whole = _quotient(first[0], second[0]) * second[0]
        return first[0] - whole, first[1] - whole
    most = max(sizes) - 1
    return max(min(first[0], 0), -most), min(max(first[1], 0), most)


def _modulus(first: Interval, second: Interval, bits: int) -> Interval:
    """Return the interval of remainders that are never negative, for divisors above 0."""
    if second[0] < 1:
        return type_range(bits)
    return first if is_inside(first, (0, second[0] - 1)) else (0, second[1] - 1)


def _shift(function: Callable[[int, int], int], *, unsigned: bool = False) -> Operation:
    def rule(operands: Sequence[Interval], bits: int, _: int) -> Interval:
        shifted, distance = operands
        if distance[0] < 0 or distance[1] >= bits:
            return type_range(bits)
        shifted = _unsigned(shifted, bits) if unsigned else shifted
        return _wrapped(_corners(function, shifted, distance), bits)

    return rule


def _bitwise(ends: bitwise.Ends) -> Operation:
    return lambda operands, bits, _: bitwise.signed(ends, operands[0], operands[1], bits)


def _chosen(choose: Callable[[int, int], int], *, unsigned: bool = False) -> Operation:
    def rule(operands: Sequence[Interval], bits: int, _: int) -> Interval:
        (a, b), (c, d) = [_unsigned(each, bits) for each in operands] if unsigned else operands
        return _wrapped((choose(a, c), choose(b, d)), bits)

    return rule


def _signed_cast(operands: Sequence[Interval], bits: int, source_bits: int) -> Interval:
    low, high = operands[0]
    return _wrapped((-high, -low) if source_bits == 1 < bits else (low, high), bits)


def _unsigned_cast(operands: Sequence[Interval], bits: int, source_bits: int) -> Interval:
    return _wrapped(_unsigned(operands[0], source_bits), bits)


def _absolute(operands: Sequence[Interval], bits: int, _: int) -> Interval:
    low, high = operands[0]
    return _wrapped((max(low, -high, 0), max(-low, high)), bits)


RULES: Mapping[str, Operation] = {
    "arith.addi": _arithmetic(lambda a, b: a + b),
    "arith.subi": _arithmetic(lambda a, b: a - b),
    "arith.muli": _arithmetic(lambda a, b: a * b),
    "arith.divsi": _division(_quotient),
    "arith.divui": _division(lambda a, b: a // b, unsigned=True),
    "arith.floordivsi": _division(lambda a, b: a // b),
    "arith.ceildivsi": _division(lambda a, b: -(-a // b)),
    "arith.ceildivui": _division(lambda a, b: -(-a // b), unsigned=True),
    "arith.remsi": lambda operands, _, __: _remainder(operands[0], operands[1]),
    "arith.remui": lambda operands, bits, _: _wrapped(
        _remainder(_unsigned(operands[0], bits), _unsigned(operands[1], bits)), bits
    ),
    "affine.mod": lambda operands, bits, _: _modulus(operands[0], operands[1], bits),
    "arith.shli": _shift(lambda a, b: a << b),
    "arith.shrsi": _shift(lambda a, b: a >> b),
    "arith.shrui": _shift(lambda a, b: a >> b, unsigned=True),
    "arith.andi": _bitwise(bitwise.and_ends),
    "arith.ori": _bitwise(bitwise.or_ends),
    "arith.xori": _bitwise(bitwise.xor_ends),
    "arith.maxsi": _chosen(max),
    "arith.minsi": _chosen(min),
    "arith.maxui": _chosen(max, unsigned=True),
    "arith.minui": _chosen(min, unsigned=True),
    "arith.extsi": _signed_cast,
    "arith.trunci": _signed_cast,
    "arith.index_cast": _signed_cast,
    "arith.extui": _unsigned_cast,
    "arith.index_castui": _unsigned_cast,
    "math.absi": _absolute,
}
"""The operations with a rule, by name."""
