"""Templates of convolutions and poolings on CPUs: register tiles that keep a core busy, innermost loops that are short.

Source: the register tile is that of Georganas et al., "Anatomy of High-Performance Deep Learning Convolutions on SIMD
Architectures" (2018).
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlir_sched.sampling import Value, divisors
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.common import sharing_loops, vector_loops
from mlir_sched.transform_scripts.extents import (
    accumulators_of,
    is_uneven,
    pieces,
    powers_of_two,
    vector_elements,
    vector_multiple,
)
from mlir_sched.transform_scripts.llvm_cpu.parallel_distribution import MAX_WORKGROUPS_PER_CORE
from mlir_sched.transform_scripts.llvm_cpu.templates.register_tiles import (
    best_of_each,
    fits,
    step_cost,
)
from mlir_sched.transform_scripts.llvm_cpu.templates.shares import workgroup_values
from mlir_sched.transform_scripts.module import Template
from mlir_sched.transform_scripts.structures import Convolution, Loop
from mlir_sched.transform_scripts.verbs.draws import DIVIDE, PEEL

MAX_ROWS = 16
MAX_VECTORS_PER_ROW = 4


def divides_well(extent: int) -> bool:
    """Say whether some good number of rows divides an extent."""
    return extent <= MAX_ROWS or any(extent % rows == 0 for rows in range(4, MAX_ROWS + 1))


def leaves_tails(vector: int, rows: Iterable[int], lanes: int) -> bool:
    """Say whether no good register tile divides a vector loop and row loops of some extents."""
    return is_uneven(vector, lanes) or not all(map(divides_well, rows))


@dataclass(frozen=True)
class Tile:
    """A register tile: elements along the vector loop, the vectors that hold them, and the rows of each row loop."""

    size: int
    vectors: int
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Windows:
    """A convolution inside a workgroup.

    Attributes:
        vector, rows: The loop that vectors lie along, and up to two loops whose iterations share its loads.
        extents: Iterations of these loops.
        lanes: Elements of a vector.
        tail: Tail strategy of the register tiles.
    """

    conv: Convolution
    target: Target
    vector: Loop
    rows: tuple[Loop, ...]
    extents: Mapping[Loop, int]
    lanes: int
    tail: str

    @staticmethod
    def of(conv: Convolution, shares: Mapping[Loop, int], target: Target, *, may_peel: bool) -> "Windows":
        """Return a convolution whose root is divided into workgroups of some sizes."""
        lanes, extents, vector = (
            vector_elements(conv.op, target),
            extents_inside(conv, shares),
            vector_loop(conv, target),
        )
        rows = tuple(loop for loop in sharing_loops(conv, vector) if extents[loop] > 1)[:2]
        uneven = leaves_tails(extents[vector], [extents[loop] for loop in rows], lanes)
        tail = PEEL if may_peel and uneven else DIVIDE
        return Windows(conv, target, vector, rows, extents, lanes, tail)

    @property
    def peels_vectors(self) -> bool:
        """Whether whole vectors leave a tail of the vector loop."""
        return self.tail == PEEL and is_uneven(self.extents[self.vector], self.lanes)

    def tiles(self) -> list[Tile]:
        """Return the best register tile, then the best for each other number of vectors, the fewest first.

        The registers hold what tiles leave over, too, which may be more values: 56 channels are seven vectors of 8.
        """
        return best_of_each(filter(self._fits, self._tiles()), lambda tile: tile.vectors, self._cost)

    def _fits(self, tile: Tile) -> bool:
        sizes = pieces(self.extents[self.vector], tile.size)
        vectors = max(accumulators_of(size, self.lanes) for size, _ in sizes)
        return fits(math.prod(tile.rows), vectors, self.target)

    def _tiles(self) -> Iterator[Tile]:
        for size in self._sizes():
            vectors = accumulators_of(size, self.lanes)
            for rows in itertools.product(*[self._row_sizes(loop) for loop in self.rows]):
                yield Tile(size, vectors, rows)

    def _sizes(self) -> list[int]:
        extent, most = self.extents[self.vector], self.lanes * MAX_VECTORS_PER_ROW
        if self.peels_vectors:
            return [self.lanes * vectors for vectors in powers_of_two(min(MAX_VECTORS_PER_ROW, extent // self.lanes))]
        unit = vector_multiple(extent, self.lanes)
        return [size for size in divisors(extent) if size % unit == 0 and size <= most] or [unit]

    def _row_sizes(self, loop: Loop) -> Sequence[int]:
        """Return numbers of rows of a loop: none that leaves one iteration, or is scattered, and needs the stack."""
        extent = self.extents[loop]
        if self.conv.epilogues and loop is self.conv.contiguous and not self._fits_stack():
            return [1]
        if self._is_free(loop):
            return [rows for rows in range(1, MAX_ROWS + 1) if not _leaves_one_iteration(extent, rows)]
        return [size for size in divisors(extent) if size <= MAX_ROWS]

    def _fits_stack(self) -> bool:
        """Say whether the stack holds a workgroup's result and the parts of it that tails make."""
        result = math.prod(self.extents.values()) * self.conv.op.element_bytes
        return not 0 < self.target.stack_bytes < 4 * result

    def _is_free(self, loop: Loop) -> bool:
        """Say whether the rows of a loop need not divide it."""
        return self.tail == PEEL and not divides_well(self.extents[loop])

    def _cost(self, tile: Tile) -> tuple[bool, float, tuple[int, ...]]:
        """Return what tells how good a tile is, the best being least.

        First counts whether the L1 cache holds what all rows read of the filter, then what one step of the sums costs
        over all tiles. Of equal tiles those with most rows along the first of the row loops are best: neighbours in
        memory share few sets of a cache.
        """
        walks = [pieces(self.extents[loop], rows) for loop, rows in zip(self.rows, tile.rows, strict=True)]
        columns = list(pieces(self.extents[self.vector], tile.size))
        cost = 0.0
        for rows in itertools.product(*walks):
            sizes, count = [size for size, _ in rows], math.prod(count for _, count in rows)
            for size, wide in columns:
                vectors = accumulators_of(size, self.lanes)
                cost += count * wide * step_cost(math.prod(sizes), vectors, vectors + self._image_loads(sizes, vectors))
        _, weights = self.conv.op.image_and_filter
        read = [extent if d in self.conv.op.reduction_dims else 1 for d, extent in enumerate(self.conv.op.extents)]
        read[self.conv.position(self.vector)] = tile.size
        is_large = 0 < self.target.l1_bytes < weights.footprint_bytes(read)
        return is_large, cost, tuple(-rows for rows in tile.rows)

    def _image_loads(self, rows: Sequence[int], vectors: int) -> float:
        """Return the loads of the image per step: an element per row, or vectors, which then serve several taps."""
        image, _ = self.conv.op.image_and_filter
        if image.step(self.conv.position(self.vector)) == 0:
            return math.prod(rows)
        taps = {d: self.conv.op.extents[d] for d in self.conv.op.convolution_dims.filter_loop}
        tile = dict(zip(map(self.conv.position, (self.vector, *self.rows)), (vectors, *rows), strict=True)) | taps
        touched = image.touched([tile.get(d, 1) for d in range(len(self.conv.op.extents))])
        return math.prod(touched) / math.prod(taps.values())

    def values(self, tile: Tile) -> dict[str, Value]:
        """Return the values of a register tile."""
        sizes = {self.vector: tile.size, **dict(zip(self.rows, tile.rows, strict=True))}
        leaves = any(self.extents[loop] % size for loop, size in sizes.items())
        values: dict[str, Value] = {"vector": tile.size if self.peels_vectors else (tile.size,)}
        if self.tail == PEEL:
            values["tail"] = PEEL if leaves else DIVIDE
        for loop, rows in zip(self.rows, tile.rows, strict=True):
            values[f"rows_{loop.name}"] = rows if leaves and self._is_free(loop) else (rows,)
        return values

    def unrollings(self) -> Iterator[dict[str, Value]]:
        """Yield which of the loops of the sums are innermost, and how many of these are unrolled, the best first."""
        dims, extents = self.conv.op.convolution_dims, self.conv.op.extents
        taps = [d for d in dims.filter_loop if extents[d] > 1]
        channels = [d for d in dims.input_channel if extents[d] > 1]
        if not (taps and channels):
            yield {"unrolled_loops": len(taps) if taps else 0}
            yield {"unrolled_loops": max(0, len(taps) - 1)}
            return
        yield {"innermost": "channels", "unrolled_loops": 0}
        yield {"innermost": "filter", "unrolled_loops": 1}
        yield {"innermost": "channels", "unrolled_loops": 1}


def vector_loop(conv: Convolution, target: Target) -> Loop:
    """Return the loop that the vectors of templates lie along."""
    return vector_loops(conv, vector_elements(conv.op, target))[0]


def extents_inside(conv: Convolution, shares: Mapping[Loop, int]) -> dict[Loop, int]:
    """Return the iterations of each parallel loop of a convolution in a workgroup of some size."""
    places = {loop.position(conv.root): size for loop, size in shares.items()}
    return {loop: places[loop.position(conv.root)] if loop.extent > 1 else 1 for loop in conv.parallel}


def cached_shares(conv: Convolution, shares: Mapping[Loop, int], target: Target) -> dict[Loop, int]:
    """Return shares of workgroups, divided along outer loops until half of L2 holds image and result of each.

    The vector loop stays whole, and the loop that shares most loads keeps the rows of a register tile. Where no such
    division is small enough, or L2 is not known, all stay as they are.
    """
    vector, sizes = vector_loop(conv, target), dict(shares)
    sharing = [loop for loop in sharing_loops(conv, vector) if loop.extent > 1]
    least = {loop.position(conv.root): MAX_ROWS for loop in sharing[:1]} | {vector.position(conv.root): vector.extent}
    image, _ = conv.op.image_and_filter

    def fits_cache() -> bool:
        tile = list(conv.op.extents)
        for loop, size in extents_inside(conv, sizes).items():
            tile[conv.position(loop)] = size
        return sum(operand.footprint_bytes(tile) for operand in (image, *conv.op.outputs)) <= target.l2_bytes // 2

    for loop, whole in shares.items():
        for size in reversed(divisors(whole)):
            if size < min(whole, least.get(loop.position(conv.root), 1)):
                break
            sizes[loop] = size
            workgroups = math.prod(each.extent // sizes[each] for each in sizes)
            if workgroups <= MAX_WORKGROUPS_PER_CORE * target.cores and fits_cache():
                return sizes
    return dict(shares)


def convolution_templates(
    conv: Convolution, shares: Mapping[Loop, int], target: Target, *, may_peel: bool
) -> Iterator[Template]:
    """Yield templates of a convolution, the best guess first.

    Args:
        shares: A workgroup's size along each parallel loop of the root.
        may_peel: Whether register tiles may leave tails.
    """
    shares = cached_shares(conv, shares, target)
    windows = Windows.of(conv, shares, target, may_peel=may_peel)
    rows, vector = tuple(loop.name for loop in windows.rows), windows.vector.name
    first, *further = windows.unrollings()
    best, *others = windows.tiles()[:3]

    def template(tile: Tile, unrolling: Mapping[str, Value], *, inside: bool = True) -> Template:
        """Return a template whose rows are inside of the loop over vectors, if they may be, or around it."""
        alone = _leaves_one_iteration(windows.extents[windows.vector], tile.size)
        order = (vector, *rows) if inside and not alone else (*rows, vector)
        ordered = {"order": order} if rows else {}
        return Template("", {**workgroup_values(shares), **windows.values(tile), **ordered, **unrolling})

    yield template(best, first)
    for tile in others[:1]:
        yield template(tile, first)
    for unrolling in further:
        yield template(best, unrolling)
    yield template(best, first, inside=False)
    for tile in others:
        yield template(tile, first, inside=False)


def _leaves_one_iteration(extent: int, size: int) -> bool:
    """Say whether a loop over tiles runs once and leaves a tail, so that IREE may keep results inside of it apart."""
    return size < extent < 2 * size
