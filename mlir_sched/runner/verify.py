"""Numeric verification: what a check is, poisoned outputs, and the comparison with a reference."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from mlir_sched.errors import UserError
from mlir_sched.payload import TensorSpec

Array = NDArray[Any]

DTYPES: dict[str, np.dtype[Any]] = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i64": np.dtype(np.int64),
    "i32": np.dtype(np.int32),
    "i16": np.dtype(np.int16),
    "i8": np.dtype(np.int8),
    "i1": np.dtype(np.bool_),
}
"""numpy type of each MLIR element type that can be run and verified."""

_POISON = {
    "f64": 0x7FFDA5A5A5A5A5A5,
    "f32": 0x7FE5A5A5,
    "f16": 0x7E5A,
    "bf16": 0x7FDA,
    "i64": 0xA5A5A5A5A5A5A5A5,
    "i32": 0xA5A5A5A5,
    "i16": 0xA5A5,
    "i8": 0xA5,
    "i1": 0xA5,
}
"""Bits an output holds before a call: quiet NaNs with a payload, which arithmetic hands on, and rare integers."""

IntegerRange: TypeAlias = tuple[int, int]
"""Lowest and highest value of an integer input, both included."""


class InputKind(StrEnum):
    """What the input tensors of one check hold."""

    EXACT = "exact"
    RANDOM = "random"
    POSITIVE = "positive"


@dataclass(frozen=True)
class Tolerance:
    """How near an output must be to the reference.

    Attributes:
        relative: Allowed difference of an element relative to the larger of the element and the root mean square of
            the reference; 0 asks for equal values.
        exact_below: Magnitude up to which no order of additions rounds, 0 where it is not known. A reference of whole
            numbers that are all smaller asks for equal values, regardless of ``relative``.
    """

    relative: float
    exact_below: float = 0.0

    def for_reference(self, reference: Array) -> float:
        """Return the relative difference that is allowed for a reference of any shape; integers must be equal."""
        if self.relative == 0.0 or reference.dtype.kind in "iub":
            return 0.0
        return 0.0 if self.exact_below and _is_whole(reference, self.exact_below) else self.relative


@dataclass(frozen=True)
class Check:
    """One numeric check: which inputs, and how near the results must be.

    Attributes:
        kind: EXACT is integers of magnitude 1 to ``bound``, in floats too; RANDOM is floats of both signs; POSITIVE is
            floats in [0.5, 1.5], for programs that take roots or logarithms.
        seed: Seed of the inputs.
        bound: Largest magnitude of an EXACT value and of every integer input without a range, >= 1.
        signed_integers: Whether integer inputs without a range may be negative; False where they may be indices.
        integer_ranges: Range of the values of each integer input, by position of the input; None at a position is the
            useful range of the element type (``inputs.py``). Ranges of i1 and of floats are ignored. None instead of
            the tuple leaves all values to ``bound`` and ``signed_integers``.
        parts: Number of parts that the elements of the ``sparse`` inputs are divided into at random, of which all but
            one are set to 0: sums of many products then have few terms. 1 leaves all elements as they are.
        part: Which part is not 0; checks of all parts together use every element.
        sparse: Shapes and types of the sparse inputs; where no input has any of them, all inputs of floats are sparse.
        gain: Factor on float inputs, relative to the scale at which products with them keep their magnitude; None
            leaves them unscaled.
        tolerance: How near the outputs must be, see :class:`Tolerance`; for element types that are not in
            ``tolerances``.
        tolerances: The same by element type of the output.
    """

    kind: InputKind
    seed: int
    bound: int = 4
    signed_integers: bool = True
    integer_ranges: tuple[IntegerRange | None, ...] | None = None
    parts: int = 1
    part: int = 0
    sparse: tuple[TensorSpec, ...] = ()
    gain: float | None = None
    tolerance: float = 0.0
    tolerances: tuple[tuple[str, Tolerance], ...] = ()

    def tolerance_for(self, spec: TensorSpec, reference: Array) -> float:
        """Return the relative difference that is allowed in an output."""
        return dict(self.tolerances).get(spec.element_type, Tolerance(self.tolerance)).for_reference(reference)


Checks: TypeAlias = tuple[Check, ...]
"""The numeric checks that a candidate must pass, in order, before it is timed."""


def dtype_of(spec: TensorSpec) -> np.dtype[Any]:
    """Return the numpy type of the elements.

    Raises:
        UserError: The element type is not one that can be run and verified.
    """
    if spec.element_type not in DTYPES:
        raise UserError(f"cannot make or compare values of type {spec.element_type}; known types: {', '.join(DTYPES)}")
    return DTYPES[spec.element_type]


def poison_bits(spec: TensorSpec) -> Array:
    """Return the bits of one poisoned element: a scalar array, the unsigned integer of the element's size."""
    return np.array(_POISON[spec.element_type], dtype=f"u{dtype_of(spec).itemsize}")


def poisoned(spec: TensorSpec) -> Array:
    """Return an array of poison."""
    return np.full(spec.shape, poison_bits(spec)).view(dtype_of(spec))


def holds_poison(array: Array, spec: TensorSpec) -> bool:
    """Say whether a float result still holds poison; False for integers, which may have these bits by right."""
    return array.dtype.kind not in "iub" and bool((_bits(array) == poison_bits(spec)).any())


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def compare(reference: Array, actual: Array, spec: TensorSpec, tolerance: float) -> str | None:
    """Say how ``actual`` differs from ``reference``, or None when it is right.

    Args:
        reference: The right result; shape and type of ``spec``.
        actual: The result under test, of the same shape and type.
        spec: The output tensor; it names the poison to look for.
        tolerance: See :class:`Tolerance`. With 0, equal values are asked for (-0 equals 0, NaN equals NaN).

    Returns:
        The first of these that holds: poison left, NaN or infinity in other places, largest error too large.
    """
    poison = poison_bits(spec)
    left = (_bits(actual) == poison) & (_bits(reference) != poison)
    if left.any():
        return _describe("elements never written or computed from unwritten memory", left, reference, actual)
    if tolerance == 0.0 or actual.dtype.kind in "iub":
        return _compare_equal(reference, actual)
    return _compare_near(reference.astype(np.float64), actual.astype(np.float64), tolerance)


def _is_whole(reference: Array, below: float) -> bool:
    wide = reference.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return bool((np.abs(wide) < below).all()) and np.array_equal(wide, np.rint(wide))


def _compare_equal(reference: Array, actual: Array) -> str | None:
    wrong = reference != actual
    if actual.dtype.kind not in "iub":
        wrong &= ~(np.isnan(reference) & np.isnan(actual))
    return _describe("elements differ where equality is due", wrong, reference, actual) if wrong.any() else None


def _compare_near(reference: Array, actual: Array, tolerance: float) -> str | None:
    finite = np.isfinite(reference)
    with np.errstate(invalid="ignore"):
        special = (finite != np.isfinite(actual)) | (~finite & ~np.isnan(reference) & (reference != actual))
    special |= np.isnan(reference) != np.isnan(actual)
    if special.any():
        return _describe("elements are NaN or infinite in one result only", special, reference, actual)
    if not finite.any():
        return None
    scale = float(np.sqrt(np.mean(np.square(reference[finite]))))
    with np.errstate(invalid="ignore"):
        error = np.where(finite, np.abs(actual - reference), 0.0)
    allowed = tolerance * np.maximum(np.where(finite, np.abs(reference), 0.0), scale)
    wrong = error > allowed
    if not wrong.any():
        return None
    worst = int(np.argmax(error))
    return (
        _describe("elements are too far off", wrong, reference, actual)
        + f"; largest error {error.flat[worst]:.3g} at {_index(worst, error.shape)}"
        + f", allowed {allowed.flat[worst]:.3g} (tolerance {tolerance:.3g}, rms {scale:.3g})"
    )


def _describe(what: str, where: Array, reference: Array, actual: Array) -> str:
    first = int(np.argmax(where))
    return (
        f"{int(where.sum())} of {where.size} {what}, first at {_index(first, where.shape)}: "
        f"{actual.flat[first]} instead of {reference.flat[first]}"
    )


def _index(flat: int, shape: tuple[int, ...]) -> str:
    return str([int(i) for i in np.unravel_index(flat, shape)])
