"""A numeric check as data: which inputs a program gets, and how near its results must be."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np

from mlir_sched.payload import TensorSpec
from mlir_sched.runner.checks.blocks import blocks
from mlir_sched.tensors.element_types import Array, holds_integers, real_numbers
from mlir_sched.tensors.values import FunctionValues

IntegerRange: TypeAlias = tuple[int, int]
"""Lowest and highest value of an integer input, both included."""

WIDE = 1000
"""Magnitude of integers wider than a byte: of more than one byte, and far from overflow."""


class Integers(StrEnum):
    """The values of integer inputs that have no range of their own."""

    WHOLE = "whole"
    """All values of types of a byte or less, and up to ``wide`` in magnitude in wider types."""
    SMALL = "small"
    """Magnitudes 1 to ``bound``."""
    INDICES = "indices"
    """0 to ``bound``."""


class InputKind(StrEnum):
    """What the input tensors of one check hold."""

    EXACT = "exact"
    RANDOM = "random"
    POSITIVE = "positive"
    GIVEN = "given"
    CAPTURED = "captured"


@dataclass(frozen=True)
class Tolerance:
    """How near an output must be to the reference.

    Attributes:
        relative: Allowed difference of an element relative to the larger of the element and the root mean square of
            the reference; 0 asks for equal values. Of integers, the difference of the values that are rounded to them
            (``ties.py``).
        exact_below: Magnitude up to which no order of additions rounds, 0 where it is not known. A reference of whole
            numbers that are all smaller asks for equal values, regardless of ``relative``.
    """

    relative: float
    exact_below: float = 0.0

    def for_reference(self, reference: Array) -> float:
        """Return the relative difference that is allowed for a reference of any shape."""
        if self.relative == 0.0 or holds_integers(reference):
            return self.relative
        return 0.0 if self.exact_below and _is_whole(reference, self.exact_below) else self.relative


@dataclass(frozen=True)
class Check:
    """One numeric check: which inputs, and how near the results must be.

    Attributes:
        kind: EXACT is integers of magnitude 1 to ``bound``, in floats too; RANDOM is floats of both signs; POSITIVE is
            floats in [0.5, 1.5], for programs that take roots or logarithms; GIVEN is what the user gives in ``given``;
            CAPTURED is what a run of the whole program passes to the dispatch.
        bound: Largest magnitude of an EXACT value, and of integers as ``integers`` says, >= 1.
        integers: The values of integer inputs without a range.
        integer_ranges: Range of the values of each integer input, by position of the input; None at a position, or
            instead of the tuple, leaves the values to ``integers``. Ranges of i1 and of floats are ignored.
        wide: Largest magnitude of integers wider than a byte, see :class:`Integers`.
        parts: Number of parts that the elements of the ``sparse`` inputs are divided into at random, of which all but
            one are set to 0: sums of many products then have few terms. 1 leaves all elements as they are.
        part: Which part is not 0; checks of all parts together use every element.
        sparse: Shapes and types of the sparse inputs; where no input has any of them, all inputs of floats are sparse.
        gain: Factor on float inputs, relative to the scale at which products with them keep their magnitude; None
            leaves them unscaled.
        scale: Further factor on float inputs of both signs, integers in floats included.
        numbers: Values of the inputs passed by value, in their order; empty where these are filled as other inputs are.
        tolerance: How near the outputs must be, see :class:`Tolerance`; for element types that are not in
            ``tolerances``.
        captured: File with the inputs of a CAPTURED check (``captured.py``). RANDOM floats have their magnitudes, and
            RANDOM integers wider than a byte their ranges.
        tolerances: The same by element type of the output.
        given: The inputs of a GIVEN check, and what the outputs have to be if the user says that.
        before: Functions that are called before, in a fresh context, in a program with state.
        doubt: What is to be said beside a result that is too far off, as right programs may be, too
            (``rounding.py``).
    """

    kind: InputKind
    seed: int
    bound: int = 4
    integers: Integers = Integers.SMALL
    integer_ranges: tuple[IntegerRange | None, ...] | None = None
    wide: int = WIDE
    parts: int = 1
    part: int = 0
    sparse: tuple[TensorSpec, ...] = ()
    gain: float | None = None
    scale: float = 1.0
    numbers: tuple[int | float, ...] = ()
    tolerance: float = 0.0
    captured: str = ""
    tolerances: tuple[tuple[str, Tolerance], ...] = ()
    given: FunctionValues | None = None
    before: tuple[str, ...] = ()
    doubt: str = ""

    def tolerance_for(self, spec: TensorSpec, reference: Array) -> float:
        """Return the relative difference that is allowed in an output."""
        return dict(self.tolerances).get(spec.element_type, Tolerance(self.tolerance)).for_reference(reference)


Checks: TypeAlias = tuple[Check, ...]
"""The numeric checks that a candidate must pass, in order, before it is timed."""


def _is_whole(reference: Array, below: float) -> bool:
    numbers = blocks(real_numbers(reference))
    return all((np.abs(block) < below).all() and np.array_equal(block, np.rint(block)) for block in numbers)
