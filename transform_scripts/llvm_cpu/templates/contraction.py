"""Templates of contractions on CPUs: register tiles that keep a core busy, and an order in which the caches serve them.

Columns pass panel by panel, and under each panel all rows, so that a panel is read from the L1 or L2 cache; or rows are
outermost, where all columns fit the L2 cache. Long reductions are blocked, so that a panel fills half of the L1 cache.
A vector times a matrix reads each element once: then a few rows of the matrix are walked along its columns, as memory
is read fastest in order, and the sums stay in the L1 cache.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from mlir_sched.sampling import Value, divisors
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.common import MAX_REDUCTION_STEP
from mlir_sched.transform_scripts.extents import floor_power_of_two, powers_of_two, vector_elements, vector_multiple
from mlir_sched.transform_scripts.llvm_cpu.templates.register_tiles import (
    MAX_APART,
    MAX_ROWS,
    MAX_UNEVEN_VECTORS,
    best_of_each,
    divisor,
    fits,
    have_no_tails,
    most_vectors,
    product_cost,
    stay_whole,
)
from mlir_sched.transform_scripts.llvm_cpu.templates.shares import workgroup_values
from mlir_sched.transform_scripts.module import Template
from mlir_sched.transform_scripts.structures import Contraction, Loop
from mlir_sched.transform_scripts.verbs.draws import DIVIDE, PEEL
from mlir_sched.transform_scripts.verbs.facts import most_accumulators

UNROLLED = 64
"""Vectors of multiply-adds that a step of the reduction has at most, beyond its first iteration."""
VECTORS = ((8, 8, 1), (4, 8, 2), (16, 0, 4), (2, 4, 4), (16, 8, 8), (8, 0, 8), (4, 16, 2), (4, 0, 8))
"""Tiles of a vector times a matrix: vectors of columns, rows of the matrix that are walked together, and those that are
unrolled; with 0 rows together the whole reduction is summed in registers.
"""


@dataclass(frozen=True)
class Tile:
    """A register tile of a product: so many rows, and columns in so many vectors."""

    rows: int
    columns: int
    vectors: int
    tail: str


@dataclass(frozen=True)
class Product:
    """A contraction inside a workgroup.

    Attributes:
        rows, columns, reduction: Iterations of the loops of these names; 1 row where there is no such loop.
        tails: Tail strategies that are drawn beside sizes that divide; none where register tiles have to divide.
        results: Elements of the result.
        apart: Vectors of columns of so many blocks are in a register tile.
        lanes: Elements of a vector.
    """

    mm: Contraction
    target: Target
    tails: tuple[str, ...]
    rows: int
    columns: int
    reduction: int
    results: int
    apart: int
    lanes: int

    @staticmethod
    def of(mm: Contraction, shares: Mapping[Loop, int], target: Target, tails: tuple[str, ...]) -> "Product":
        """Return a contraction whose root is divided into workgroups of some sizes."""
        places = {loop.position(mm.root): size for loop, size in shares.items()}

        def inside(loop: Loop | None) -> int:
            return 1 if loop is None else places.get(loop.position(mm.root), loop.extent)

        lanes, rows, columns = vector_elements(mm.op, target), inside(mm.rows), inside(mm.columns)
        further = [inside(loop) for loop in mm.further_columns if inside(loop) > 1]
        one_vector = mm.rows is not None and columns <= lanes
        shared = further and one_vector and not mm.is_crossed and mm.strided_operand is None
        return Product(
            mm,
            target,
            () if have_no_tails(rows, columns, lanes) else tails,
            rows,
            columns,
            mm.reduction.extent,
            math.prod(map(inside, (*mm.others, *mm.tiled))),
            divisor(further[-1], MAX_APART) if shared else 1,
            lanes,
        )

    def tiles(self) -> list[Tile]:
        """Return the best register tile, then the best for each other number of vectors, the fewest first.

        Strided columns are transposed square by square of a vector's length, so that one vector comes first there.
        """
        strided = self.mm.strided_operand is not None

        def cost(tile: Tile) -> tuple[bool, float]:
            cached, sizes = self.cached_rows(tile), (tile.rows, tile.columns)
            once = product_cost((cached, self.columns), sizes, self.lanes, self.apart)
            return strided and tile.vectors > 1, once * (self.rows // cached)

        possible = (tile for tile in self._tiles() if fits(tile.rows, tile.vectors * self.apart, self.target))
        return best_of_each(possible, lambda tile: tile.vectors, cost)

    def _tiles(self) -> Iterator[Tile]:
        lanes, unit = self.lanes, vector_multiple(self.columns, self.lanes)
        widest = most_vectors(self.rows, most_accumulators(self.target) // self.apart)
        for columns in divisors(self.columns):
            even = columns % unit == 0 and (self.columns < lanes or columns.bit_count() == 1)
            if even and columns <= widest * lanes:
                for rows in divisors(self.rows):
                    yield Tile(rows, columns, math.ceil(columns / lanes), DIVIDE)
        if PEEL not in self.tails:
            return
        for vectors in powers_of_two(min(widest, MAX_UNEVEN_VECTORS, self.columns // lanes)):
            for rows in range(1, min(MAX_ROWS, self.rows) + 1):
                if self.rows % rows or self.columns % (vectors * lanes):
                    yield Tile(rows, vectors * lanes, vectors, PEEL)

    def cached_rows(self, tile: Tile) -> int:
        """Return how many rows a tile for the caches has: as many as half of L2 holds, or all."""
        row = self.reduction * self.mm.op.inputs[0].tensor.element_bytes
        is_tiled = self.target.l2_bytes and not stay_whole(self.mm)
        kept = self.target.l2_bytes // 2 // row if is_tiled else self.rows
        unit = 1 if tile.tail == PEEL else tile.rows
        return _largest([size for size in divisors(self.rows) if size >= tile.rows and size % unit == 0], kept)

    def fewer_rows(self, tile: Tile) -> Tile:
        """Return a register tile of at most half of the rows: of a divisor of them where rows may leave no tail."""
        half = max(1, tile.rows // 2)
        is_free = tile.tail == PEEL and self.columns % tile.columns
        return replace(tile, rows=half if is_free else divisor(tile.rows, half))

    def step(self, tile: Tile) -> int:
        """Return how many iterations of the reduction are unrolled."""
        most = MAX_REDUCTION_STEP if self.mm.strided_operand else UNROLLED // (tile.rows * tile.vectors * self.apart)
        return divisor(self.reduction, max(1, min(most, MAX_REDUCTION_STEP)))

    def may_block(self, block: int) -> bool:
        """Say whether the reduction may be summed block by block; epilogues then read the result from the stack."""
        result = self.results * self.mm.op.element_bytes
        return not self.mm.epilogues or (block < self.reduction and not 0 < self.target.stack_bytes < result)

    def values(self, tile: Tile) -> dict[str, Value]:
        """Return the values of a register tile, with all columns and :meth:`cached_rows` in the tile for the caches."""
        rows = self.cached_rows(tile)
        values: dict[str, Value] = {"tail": tile.tail} if self.tails else {}
        if self.apart > 1:
            values["apart"] = (self.apart,)
        if tile.tail == PEEL:
            sizes: dict[str, Value] = {"register_columns": tile.columns, "register_rows": tile.rows}
            return values | sizes | {"columns": (self.columns,), "rows": (rows,)}
        register_rows = (tile.rows,) if stay_whole(self.mm) else (rows, tile.rows)
        return values | {"columns": (self.columns, tile.columns), "rows": register_rows}


def _largest(sizes: list[int], most: int) -> int:
    """Return the largest size up to a bound; the smallest where all are above it."""
    return max((size for size in sizes if size <= most), default=min(sizes))


def contraction_templates(
    mm: Contraction, shares: Mapping[Loop, int], target: Target, tails: tuple[str, ...]
) -> Iterator[Template]:
    """Yield templates of a contraction, the best guess first.

    Args:
        shares: A workgroup's size along each loop of the root that is distributed.
        tails: Tail strategies that may be drawn beside sizes that divide.
    """
    product = Product.of(mm, shares, target, tails)
    made = vector_templates(product) if mm.rows is None else product_templates(product)
    for each in made:
        yield Template(each.program, {**workgroup_values(shares), **each.values})


def product_templates(product: Product) -> Iterator[Template]:
    """Yield templates of a product, the best guess first."""
    under_panel, rows_outside = ("columns", "rows"), ("rows", "columns")
    best, *others = product.tiles()[:3]

    def registers(tile: Tile, order: tuple[str, str], **further: Value) -> Template:
        values: dict[str, Value] = {"register_order": order, "reduction_step": (product.step(tile),)}
        return Template("registers", product.values(tile) | values | further)

    yield registers(best, under_panel)
    if product.mm.strided_operand is not None:
        yield registers(product.fewer_rows(best), under_panel)
    yield registers(best, rows_outside)
    yield from _blocked(product, best)
    for other in others:
        yield registers(other, under_panel)
    yield registers(best, under_panel, reduction_step=(1,))
    for other in others:
        yield registers(other, rows_outside)


def _blocked(product: Product, tile: Tile) -> Iterator[Template]:
    """Yield the template whose panel of columns, a block of the reduction deep, fills half of the L1 cache.

    Sums are read and written once per block. There is no template where only short blocks divide the reduction.
    """
    row = tile.columns * product.mm.op.inputs[1].tensor.element_bytes
    block = divisor(product.reduction, max(1, product.target.l1_bytes // 2 // row))
    if block < min(MAX_REDUCTION_STEP, product.reduction) or not product.may_block(block):
        return
    order: dict[str, Value] = {
        "cache_order": ("reduction", "columns", "rows"),
        "register_order": ("columns", "rows"),
        "reduction": (block, divisor(block, product.step(tile))),
    }
    yield Template("cache", product.values(tile) | order)


def vector_templates(product: Product) -> Iterator[Template]:
    """Yield templates of a vector times a matrix, the best guess first."""
    if product.mm.strided_operand is not None:
        return
    columns, lanes, peels = product.columns, product.lanes, PEEL in product.tails
    most = MAX_UNEVEN_VECTORS if peels else most_vectors(1, most_accumulators(product.target))

    def width(vectors: int) -> int:
        """Return the columns of a tile: so many vectors, or as many as it may have, a power of two."""
        return lanes * floor_power_of_two(min(vectors, most, columns // lanes if peels else most))

    for vectors, blocked, step in sorted(VECTORS, key=lambda tile: columns % width(tile[0])):
        wide = width(vectors)
        values: dict[str, Value] = {"columns": (columns,), "register_columns": wide, "tail": PEEL}
        if not peels:
            values = {"columns": (columns, wide), **({"tail": DIVIDE} if product.tails else {})}
        if blocked == 0:
            yield Template("registers", values | {"reduction_step": (divisor(product.reduction, step),)})
        elif (block := divisor(product.reduction, blocked)) > 1 and product.may_block(block):
            sums: dict[str, Value] = {"reduction": (block, divisor(block, step))}
            yield Template("cache", values | sums | {"cache_order": ("reduction", "columns")})
