"""The operations of random programs: each adds MLIR to a draft, and the same computation in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from benchmarks.fuzz.draft import Draft, Value
from benchmarks.fuzz.elementwise import converted, dequantised, elementwise, quantised, requantised, with_another
from benchmarks.fuzz.extents import EXTENTS
from benchmarks.fuzz.movement import lengthened, padded, sliced, transposed
from benchmarks.fuzz.products import convolved, multiplied
from benchmarks.fuzz.reductions import reduced, softmax

Operation: TypeAlias = Callable[[Draft, Value], Value | None]
"""Returns a value made from another one; None where the operation does not take that."""

OPERATIONS: tuple[Operation, ...] = (
    elementwise, elementwise, with_another, converted, quantised, requantised, dequantised, multiplied, multiplied,
    convolved, convolved, reduced, transposed, padded, sliced, lengthened, softmax,
)  # fmt: skip
"""All operations, the frequent ones more than once."""
NARROW_OPERATIONS: tuple[Operation, ...] = (converted, converted, transposed, padded, sliced, lengthened)
"""Those that values of :data:`~benchmarks.fuzz.draft.NARROW` types can have."""


def first_shape(draft: Draft) -> tuple[int, ...]:
    """Return the shape of a program's first argument: a vector, a matrix, matrices or an image."""
    rank = draft.any_of([1, 2, 2, 2, 3, 4, 4])
    if rank == 4:
        return (1, draft.any_of([5, 9, 14, 17]), draft.any_of([5, 8, 13, 16]), draft.any_of([1, 3, 8, 16, 17, 32]))
    return tuple(draft.any_of(EXTENTS) for _ in range(rank))
