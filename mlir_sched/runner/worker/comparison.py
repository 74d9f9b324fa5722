"""The comparison of results with a reference, and the poison that outputs hold before a call."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mlir_sched.payload import TensorSpec
from mlir_sched.runner.checks.blocks import blocks, parts
from mlir_sched.runner.checks.inputs import PROBES
from mlir_sched.runner.checks.ties import most_differing
from mlir_sched.tensors.element_types import DTYPES, Array, dtype_of, holds_integers, is_integer, real_numbers

_POISON = {
    "f64": 0x7FFDA5A57FFDA5A5,
    "f32": 0x7FE5A5A5,
    "f16": 0x7E5A,
    "bf16": 0x7FDA,
    "f8E4M3FN": 0x7F,
    "f8E5M2": 0x7D,
    "f8E4M3FNUZ": 0x80,
    "f8E5M2FNUZ": 0x80,
    "complex<f32>": 0x7FE5A5A57FE5A5A5,
    "i64": 0xA5A5A5A5A5A5A5A5,
    "i32": 0xA5A5A5A5,
    "i16": 0xA5A5,
    "i8": 0xA5,
    "i4": 0x5,
    "i2": 0x2,
    "i1": 0xA5,
    "ui64": 0xA5A5A5A5A5A5A5A5,
    "ui32": 0xA5A5A5A5,
    "ui16": 0xA5A5,
    "ui8": 0xA5,
}
"""Bits an output holds before a call: NaNs with a payload where the type has them, which arithmetic hands on, and rare
integers. Those of 8 bytes repeat 4 bytes, with which devices fill buffers."""
_ONE_NAN = frozenset({"f8E4M3FN", "f8E4M3FNUZ", "f8E5M2FNUZ"})
"""Types of floats whose poison arithmetic makes, too, as they have one NaN (but for its sign)."""
ROUNDINGS = 16.0
"""Multiple of the movement of a result under one rounding of every input that the roundings of all ops may move it.

In a layer of a transformer with a saturated softmax, f32 and f64 differ by up to seven such movements, by the order of
additions; two programs may differ twice as much."""
SPREAD = 8.0
"""Factor on the root mean square of an element's movements, of which a few say little.

The ratio of a normal variable to the root mean square of 8 others has Student's distribution with 8 degrees of freedom:
a difference that is normal with a standard deviation of ten roundings, about the largest of the measurement above,
exceeds the bound with a probability of 1e-6."""
MOST_MOVED = 1e-2
"""Most that an element may differ for this reason: a result that rounding moves further says nothing."""


def poison_bits(spec: TensorSpec) -> Array:
    """Return the bits of one poisoned element: a scalar array, the unsigned integer of the element's size."""
    return np.array(_POISON[spec.element_type], dtype=f"u{dtype_of(spec).itemsize}")


def poisoned(spec: TensorSpec) -> Array:
    """Return an array of poison."""
    return np.full(spec.shape, poison_bits(spec)).view(dtype_of(spec))


def holds_poison(array: Array, spec: TensorSpec) -> bool:
    """Say whether a float result still holds poison; False for types whose results may have these bits by right."""
    telling = not is_integer(spec) and spec.element_type not in _ONE_NAN
    return telling and bool((_bits(array) == poison_bits(spec)).any())


def _bits(array: Array) -> Array:
    bits: Array = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    return np.where(bits == 0xFF, 0x7F, bits) if array.dtype == DTYPES["f8E4M3FN"] else bits  # the sign of its NaN


def compare(reference: Array, actual: Array, spec: TensorSpec, tolerance: float) -> str | None:
    """Say how ``actual`` differs from ``reference``, or None when it is right.

    Args:
        reference: The right result; shape and type of ``spec``.
        actual: The result under test, of the same shape and type.
        tolerance: See :class:`Tolerance`. With 0, equal values are asked for (-0 equals 0, NaN equals NaN).

    Returns:
        The first of these that holds: poison left, NaN or infinity in other places, largest error too large. Integers
        that were rounded from floating point may have the bits of poison by right.
    """
    poison = poison_bits(spec)
    pairs = zip(parts(_bits(actual)), parts(_bits(reference)), strict=True)
    different = [(found, expected) for found, expected in pairs if not np.array_equal(found, expected)]
    if not different:
        return None
    if tolerance > 0.0 and is_integer(spec):
        return _compare_rounded(reference, actual, spec, tolerance)
    if any(((found == poison) & (expected != poison)).any() for found, expected in different):
        left = (_bits(actual) == poison) & (_bits(reference) != poison)
        return _describe("elements never written or computed from unwritten memory", left, reference, actual)
    if tolerance == 0.0:
        return _compare_equal(reference, actual)
    return _compare_near(real_numbers(reference), real_numbers(actual), tolerance)


def deviations(reference: Array, actual: Array) -> Array:
    """Return the difference of every element, relative as in :class:`Tolerance`; in one dimension.

    It is infinite where one of two elements is NaN or infinite, and where they differ and nothing is allowed, as in a
    reference of zeros.
    """
    reference, actual = real_numbers(reference), real_numbers(actual)
    scale = _rms_of_finite(reference)
    found = [_relative(*pair, scale) for pair in zip(blocks(reference), blocks(actual), strict=True)]
    return np.concatenate(found) if found else np.zeros(0)


def _relative(expected: Array, found: Array, scale: float) -> Array:
    error, unit = _error(expected, found), _allowed(expected, 1.0, scale)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        relative: Array = np.where(error == 0, 0.0, error / unit)
    relative[_special(expected, found)] = math.inf
    return relative


def _compare_equal(reference: Array, actual: Array) -> str | None:
    wrong = reference != actual
    if not holds_integers(actual):
        wrong &= ~(np.isnan(reference) & np.isnan(actual))
    return _describe("elements differ where equality is due", wrong, reference, actual) if wrong.any() else None


def _compare_rounded(reference: Array, actual: Array, spec: TensorSpec, tolerance: float) -> str | None:
    """Compare integers that were rounded from floating point (``ties.py``)."""
    expected, found = reference.astype(np.float64), actual.astype(np.float64)
    if (far := np.abs(expected - found) > 1).any():
        return _describe("integers differ by more than one", far, reference, actual)
    differing, most = expected != found, most_differing(reference, spec, tolerance)
    if int(differing.sum()) <= most:
        return None
    return _describe("integers differ by one", differing, reference, actual) + f"; rounding explains {most} of them"


def _compare_near(reference: Array, actual: Array, tolerance: float) -> str | None:
    scale = _rms_of_finite(reference)
    pairs = zip(blocks(reference), blocks(actual), strict=True)
    if not any(_differ(expected, found, tolerance, scale) for expected, found in pairs):
        return None
    expected, found = reference.astype(np.float64), actual.astype(np.float64)
    if (special := _special(expected, found)).any():
        return _describe("elements are NaN or infinite in one result only", special, expected, found)
    error, allowed = _error(expected, found), _allowed(expected, tolerance, scale)
    worst = int(np.argmax(error))
    return (
        _describe("elements are too far off", error > allowed, expected, found)
        + f"; largest error {error.flat[worst]:.3g} at {_index(worst, error.shape)}"
        + f", allowed {allowed.flat[worst]:.3g} (tolerance {tolerance:.3g}, rms {scale:.3g})"
    )


def _differ(expected: Array, found: Array, tolerance: float, scale: float) -> bool:
    """Say whether any element is wrong; most blocks have no error above the one that is allowed everywhere."""
    with np.errstate(invalid="ignore"):
        if np.abs(found - expected).max(initial=0.0) <= tolerance * scale:  # not where an element is NaN or infinite
            return False
    return bool((_special(expected, found) | (_error(expected, found) > _allowed(expected, tolerance, scale))).any())


def _rms_of_finite(array: Array) -> float:
    """Return the root of the mean square of the finite elements; 0 where there is none.

    Squares that overflow or vanish are no reason to allow any difference, or none.
    """
    rms = _rms_in_units(array, 1.0)
    if 0.0 < rms < math.inf:
        return rms
    largest = max((float(np.abs(block[np.isfinite(block)]).max(initial=0.0)) for block in blocks(array)), default=0.0)
    return largest * _rms_in_units(array, largest) if largest else 0.0


def _rms_in_units(array: Array, unit: float) -> float:
    total, count = 0.0, 0
    for block in blocks(array):
        usable = np.isfinite(block)
        finite = (block if usable.all() else block[usable]) / unit
        with np.errstate(over="ignore"):
            total, count = total + float(finite @ finite), count + finite.size
    return math.sqrt(total / count) if count else 0.0


def _special(expected: Array, found: Array) -> Array:
    """Return where one of two results is NaN or infinite, and the other is not the same."""
    same = (expected == found) | (np.isnan(expected) & np.isnan(found))
    special: Array = ~(np.isfinite(expected) & np.isfinite(found) | same)
    return special


def _error(expected: Array, found: Array) -> Array:
    """Return the absolute error of the elements that are to be finite, else 0."""
    with np.errstate(invalid="ignore"):
        error: Array = np.where(np.isfinite(expected), np.abs(found - expected), 0.0)
    return error


def _allowed(expected: Array, tolerance: float, scale: float) -> Array:
    """Return the error that is allowed for every element."""
    magnitude: Array = np.where(np.isfinite(expected), np.abs(expected), 0.0)
    allowed: Array = tolerance * np.maximum(magnitude, scale)
    return allowed


def _describe(what: str, where: Array, reference: Array, actual: Array) -> str:
    first = int(np.argmax(where))
    return (
        f"{int(where.sum())} of {where.size} {what}, first at {_index(first, where.shape)}: "
        f"{actual.flat[first]} instead of {reference.flat[first]}"
    )


def _index(flat: int, shape: tuple[int, ...]) -> str:
    return str([int(i) for i in np.unravel_index(flat, shape)])


@dataclass
class Movements:
    """How far rounding of the inputs moves each element of each result, as far as that was asked.

    A tolerance counts roundings, and does not know that a saturated softmax, say, turns a difference of two large
    numbers into a factor. How sensitive an element is shows in how far roundings of the inputs move it.

    An element that rounding of the inputs does not move may not differ at all for this reason, however far the elements
    beside it are moved.

    Attributes:
        references: The results of the right program on the inputs themselves.
        probes: How often it was called on inputs that are rounded at random, at most :data:`PROBES` times.
        squares: Sums of the squares of each element's movements, in one dimension per result.
    """

    references: Sequence[Array]
    probes: int = 0
    squares: list[Array] = field(init=False)

    def __post_init__(self) -> None:
        self.squares = [np.zeros(reference.size) for reference in self.references]

    def add(self, moved: Sequence[Array]) -> None:
        """Note the results on inputs that are rounded at random, the same for equal numbers."""
        for total, reference, result in zip(self.squares, self.references, moved, strict=True):
            total += deviations(reference, result) ** 2
        self.probes += 1

    def bound(self, position: int) -> Array:
        """Return how far each element of a result may be off, relative as in ``Tolerance``, at least.

        Further probes make no bound smaller: what few of them explain, all of them do.
        """
        return np.minimum(MOST_MOVED, ROUNDINGS * SPREAD * np.sqrt(self.squares[position] / PROBES))
