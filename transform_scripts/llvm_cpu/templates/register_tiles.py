"""Register tiles of sums of products: which there are, and about how long a core takes for each.

In every step of the reduction a tile of rows by vectors loads its vectors and one element per row, and makes one
multiply-add per row and vector. More rows and vectors share more loads, until accumulators and loaded values do not fit
the registers; fewer leave the core waiting for the sums of the step before.

What tiles leave over costs what it executes: a few elements take as long as a vector, and what is no vector is cut into
several tiles.

Source: Goto & van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008), section 6.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from mlir_sched.sampling import divisors
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.extents import floor_power_of_two, piece, pieces
from mlir_sched.transform_scripts.structures import Contraction
from mlir_sched.transform_scripts.verbs.facts import most_accumulators

IN_FLIGHT = 8
"""Multiply-adds that a core works on at once: each takes about 4 cycles, and cores begin 2, and 2 loads, in a cycle."""
LOAD_COST = 1 / 16
"""What a load costs that a core makes beside its multiply-adds, in multiply-adds."""

MAX_ROWS = 24
MAX_VECTORS_PER_ROW, MAX_UNEVEN_VECTORS = 16, 4
FEW_ROWS = 6
"""Rows from which register tiles above 4 vectors are slower: they load more than they multiply (3x128: 1.2x slower)."""
MAX_APART = 4
"""Most vectors of columns that lie apart in a register tile: with more, a tile has too few rows."""

T = TypeVar("T")


def stay_whole(mm: Contraction) -> bool:
    """Say whether the rows have no tiles but register tiles, all of about a size, as further rows have the others.

    Where one register tile holds all rows, smaller tiles, which are slower, would be drawn often.
    """
    return mm.rows is not None and bool(mm.further_rows) and mm.rows.extent <= MAX_ROWS


def have_no_tails(rows: int, columns: int, lanes: int) -> bool:
    """Say whether the register tiles of a product have to divide it."""
    return columns < lanes or (columns % lanes == 0 and rows <= FEW_ROWS)


def most_vectors(rows: int, accumulators: int) -> int:
    """Return how many vectors of columns, a power of two, a tile of a product of so many rows has at most."""
    return floor_power_of_two(min(MAX_VECTORS_PER_ROW, max(1, accumulators // min(rows, FEW_ROWS))))


def fits(rows: int, vectors: int, target: Target) -> bool:
    """Say whether accumulators, one step's vectors and an element of a row fit the registers of a core."""
    accumulators = rows * vectors
    return accumulators <= most_accumulators(target) and accumulators + vectors + 1 <= target.vector_registers


def step_cost(rows: int, vectors: int, loads: float) -> float:
    """Return about how long a tile takes per step of the reduction, in the time of a multiply-add."""
    return max(rows * vectors, loads, IN_FLIGHT) + LOAD_COST * loads


def product_cost(extents: tuple[int, int], tile: tuple[int, int], lanes: int, apart: int = 1) -> float:
    """Return what one step of the reduction costs over all tiles of a product.

    Args:
        extents, tile: (rows, columns) of the product and of a register tile.
        apart: Blocks whose columns are in a tile.
    """
    cost = 0.0
    for rows, high in pieces(extents[0], tile[0]):
        for columns, wide in pieces(extents[1], tile[1]):
            for size, count in pieces(columns, piece(columns, lanes)):
                vectors = math.ceil(size / lanes) * apart
                cost += high * wide * count * step_cost(rows, vectors, rows + vectors)
    return cost


def best_of_each(candidates: Iterable[T], vectors: Callable[[T], int], cost: Callable[[T], Any]) -> list[T]:
    """Return the cheapest tile of all, then the cheapest of each other number of vectors, the fewest vectors first.

    Tiles of one vector are as fast as any where a core makes two loads per multiply-add, and leave the smallest tails.
    """
    best = dict[int, T]()
    for candidate in sorted(candidates, key=cost):
        best.setdefault(vectors(candidate), candidate)
    first, *others = best.values()
    return [first, *sorted(others, key=vectors)]


def divisor(extent: int, most: float, unit: int = 1) -> int:
    """Return the largest divisor of an extent up to ``most`` that is a multiple of a unit; the unit where none is."""
    return max((size for size in divisors(extent) if size <= most and size % unit == 0), default=unit)
