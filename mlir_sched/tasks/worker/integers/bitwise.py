"""The ends of bitwise functions of intervals, exactly.

From the highest bit down, an operand's bit is raised, or lowered, where that gives the better result and leaves a value
inside of its interval (Warren, Hacker's Delight, 2nd edition, section 4-3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import TypeAlias

Interval: TypeAlias = tuple[int, int]
"""Smallest and largest integer, both included."""
Ends: TypeAlias = Callable[[Interval, Interval, int], Interval]
"""Returns the smallest and the largest result for two intervals of non-negative integers of some width in bits."""


def signed(ends: Ends, first: Interval, second: Interval, bits: int) -> Interval:
    """Return the smallest and the largest result for two intervals in two's complement.

    Args:
        bits: Width of operands and result, >= 1.
    """
    found = list[int]()
    for one, other in product(_by_sign(first, bits), _by_sign(second, bits)):
        found += (_signed(end, bits) for end in ends(one, other, bits))
    return min(found), max(found)


def and_ends(first: Interval, second: Interval, bits: int) -> Interval:
    """Return the ends of a conjunction: those of a disjunction of complements."""
    ones = (1 << bits) - 1
    low, high = or_ends((ones - first[1], ones - first[0]), (ones - second[1], ones - second[0]), bits)
    return ones - high, ones - low


def or_ends(first: Interval, second: Interval, bits: int) -> Interval:
    """Return the ends of a disjunction."""
    return _least_or(first, second, bits), _greatest_or(first, second, bits)


def xor_ends(first: Interval, second: Interval, bits: int) -> Interval:
    """Return the ends of an exclusive disjunction: the largest result is the complement of the smallest for ~b."""
    ones = (1 << bits) - 1
    return _least_xor(first, second, bits), ones - _least_xor(first, (ones - second[1], ones - second[0]), bits)


def _least_or(first: Interval, second: Interval, bits: int) -> int:
    (a, b), (c, d) = first, second
    for bit in _bits(bits):
        if c & ~a & bit and _raised(a, bit) <= b:
            return _raised(a, bit) | c
        if a & ~c & bit and _raised(c, bit) <= d:
            return a | _raised(c, bit)
    return a | c


def _greatest_or(first: Interval, second: Interval, bits: int) -> int:
    (a, b), (c, d) = first, second
    for bit in _bits(bits):
        if b & d & bit and _lowered(b, bit) >= a:
            return _lowered(b, bit) | d
        if b & d & bit and _lowered(d, bit) >= c:
            return b | _lowered(d, bit)
    return b | d


def _least_xor(first: Interval, second: Interval, bits: int) -> int:
    (a, b), (c, d) = first, second
    for bit in _bits(bits):
        if c & ~a & bit and _raised(a, bit) <= b:
            a = _raised(a, bit)
        elif a & ~c & bit and _raised(c, bit) <= d:
            c = _raised(c, bit)
    return a ^ c


def _bits(bits: int) -> Iterator[int]:
    return (1 << place for place in reversed(range(bits)))


def _raised(value: int, bit: int) -> int:
    """Return the next value that has a bit which this one does not have: no bit below it is set."""
    return (value | bit) & -bit


def _lowered(value: int, bit: int) -> int:
    """Return the value before this one that does not have a bit which this one has: all bits below it are set."""
    return (value - bit) | (bit - 1)


def _by_sign(interval: Interval, bits: int) -> list[Interval]:
    """Return the parts of an interval below 0, as unsigned ones, and from 0 on."""
    low, high = interval
    parts = (low, min(high, -1)), (max(low, 0), high)
    return [(low % (1 << bits), high % (1 << bits)) for low, high in parts if low <= high]


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value
