"""Small facts about loop extents and vectors, which the schedule, the features and several modules need."""

import math
from collections.abc import Iterator
from functools import lru_cache

from mlir_sched.payload import LinalgOp
from mlir_sched.targets.target import Target


def vector_multiple(extent: int, vector_elements: int) -> int:
    """Return the largest power of two that divides the extent, at most one vector register of elements."""
    return min(vector_elements, extent & -extent)


def is_uneven(extent: int, vector_elements: int) -> bool:
    """Say whether whole vectors leave over some iterations of an extent above one vector."""
    return extent > vector_elements and extent % vector_elements != 0


def floor_power_of_two(number: int) -> int:
    """Return the largest power of two that is not above a number >= 1."""
    return 1 << (number.bit_length() - 1)


def powers_of_two(most: int) -> list[int]:
    """Return the powers of two up to a number >= 1, ascending."""
    return [1 << exponent for exponent in range(most.bit_length())]


def vector_elements(op: LinalgOp, target: Target) -> int:
    """Return how many elements of the op's result one vector register holds."""
    return target.vector_elements(op.element_bytes)


def stay_in_vectors(size: int, lanes: int) -> bool:
    """Say whether sums of ``size`` neighbours stay in vector registers from one step of the reduction to the next.

    LLVM widens vectors that are shorter than a register, and splits powers of two into registers. It makes scalars of
    all others, one per element, and in every step vectors of these.

    Source: LLVM, ``TargetLoweringBase::getVectorTypeBreakdown``.
    """
    return size <= lanes or size.bit_count() == 1


def piece(rest: int, lanes: int) -> int:
    """Return the size of the pieces that keep sums of ``rest`` neighbours in vectors: all of them where these are one.

    Other pieces are powers of two, as large as leave a last piece that is a vector: 36 is 32 and 4 in vectors of 16.
    """
    if stay_in_vectors(rest, lanes):
        return rest
    return max(size for size in powers_of_two(rest) if size >= lanes and stay_in_vectors(rest % size, lanes))


def registers_of(size: int, lanes: int) -> int:
    """Return how many registers hold the sums of ``size`` neighbours: those of vectors, else of scalars."""
    return max(1, size // lanes) if stay_in_vectors(size, lanes) else size


def chunk(size: int, lanes: int) -> int:
    """Return how many elements of a vector loop's tile make one vector value: a power of two, or at most a register.

    LLVM takes 14 s for a tile with vectors of 48 elements, and 0.5 s for the same tile with 3 vectors of 16.
    """
    return size if size <= lanes or size & (size - 1) == 0 else size & -size


def accumulators_of(size: int, lanes: int) -> int:
    """Return how many registers a vector loop's tile, or what tiles leave over of it, takes, value by value."""
    return math.ceil(size / min(chunk(size, lanes), lanes))


def pieces(extent: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield (size, how many) of the tiles of a loop: the whole ones, and what they leave over."""
    if extent >= size:
        yield size, extent // size
    if extent % size:
        yield extent % size, 1


MATH_OPS = 16
"""About how many vector instructions one ``math`` function takes: a polynomial of degree 5 to 8 with its reduction."""


def instructions(op: LinalgOp, vectors: float) -> int:
    """Return about how many vector instructions an op's body takes for ``vectors`` vectors."""
    return int(max(1.0, vectors) * _instructions(op.body))


@lru_cache(maxsize=1024)
def _instructions(body: tuple[str, ...]) -> int:
    return sum(MATH_OPS if name.startswith("math.") else 1 for name in body)
