"""Direct convolutions and poolings on CPUs: any rank, stride, dilation, grouping and layout, with fill and epilogues.

One program spans the space. A register tile of the result, one vector loop by at most two row loops, stays in registers
while all of the filter and the input channels are summed; fill and epilogues are computed in the same tile. Every
other loop is tiled by 1, so the code to vectorize has no windows left: it is a product of a vector and a scalar, or of
two vectors. Rows are a second dimension of the vector, or unrolled side by side, as a strided image needs.

A padded image (the ``fused-padding`` flags leave the padding in the dispatch) is not copied: after all tiling, every
slice of it is a pixel, or a vector of channels, that lies wholly inside the image or wholly outside.

No pattern may turn the products into contractions: on tiles whose unit dimensions were folded
``transfer_permutation_patterns`` cost up to 29 times (phase form of a transposed convolution, IREE 3.13 on Zen 4).

Source: the roles of the loops are those of MLIR's ``inferConvolutionDims``; the register tile is that of Georganas et
al., "Anatomy of High-Performance Deep Learning Convolutions on SIMD Architectures" (2018).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.common import sharing_loops, vector_loops
from mlir_sched.transform_scripts.extents import accumulators_of, chunk, vector_elements, vector_multiple
from mlir_sched.transform_scripts.llvm_cpu.templates.convolution import (
    MAX_ROWS,
    MAX_VECTORS_PER_ROW,
    convolution_templates,
    divides_well,
    leaves_tails,
    vector_loop,
)
from mlir_sched.transform_scripts.llvm_cpu.templates.shares import equal_shares
from mlir_sched.transform_scripts.module import ScheduleModule, ScheduleProgram, Template
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Convolution, Loop, Loops, contiguous_loop
from mlir_sched.transform_scripts.tracking.tile_loops import TileLoop
from mlir_sched.transform_scripts.verbs.draws import DIVIDE, PEEL
from mlir_sched.transform_scripts.verbs.facts import MAX_UNROLLED_VECTORS

MAX_PADDED_VECTORS = 256
"""Most unrolled vectors where padding is read in place, each on a condition of its own. On a core of a Zen 3, IREE 3.13
takes 0.6 s to compile most tiles of a 3x3 convolution of 64 channels, 2 s with 256 vectors, and up to 25 s with 512."""


class ConvolutionTiling(ScheduleModule):
    """A module that tiles a convolution with its fill and element-wise epilogues for registers.

    Args:
        peel: Whether to draw also register tiles that do not divide, whose tails are peeled.
    """

    name: ClassVar[str] = "convolution"
    backends: ClassVar[tuple[str, ...]] = ("llvm-cpu",)

    def __init__(self, peel: bool = True) -> None:
        self.peel = peel

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Convolution | None:
        """Match a dispatch of [fill,] convolution [, element-wise ops on its result] that has a vector loop."""
        conv = matchers.convolution(op, dispatch)
        return conv if conv and vector_loops(conv, vector_elements(op, target)) else None

    def programs(self) -> Mapping[str, ScheduleProgram]:
        """Return the one program."""
        return {"": partial(convolve, may_peel=self.peel)}

    def templates(self, found: Convolution, dispatch: Dispatch, target: Target) -> Iterable[Template]:
        """Return register tiles that keep a core busy."""
        along = vector_loop(found, target).position(found.root)
        shares = equal_shares(dispatch, self.parallel(found, dispatch), target, along=along)
        return convolution_templates(found, shares, target, may_peel=self.peel)


@dataclass(frozen=True)
class ConvolutionTile:
    """A sampled register tile.

    Attributes:
        sizes: Size per parallel loop longer than 1.
        order: The row loops and the vector loop, outermost first; the loops around them are tiled by 1.
        vector: The vector loop.
        lanes: Elements of one vector register.
        side_by_side: Row loops that are unrolled; the other row loops are a dimension of the vector.
        summed: Reduction loops around the tile, outermost first.
        unrolled: Reduction loops inside the tile, outermost first.
    """

    sizes: Mapping[Loop, int]
    order: Loops
    vector: Loop
    lanes: int
    side_by_side: Loops
    summed: Loops
    unrolled: Loops


def convolve(s: Schedule, conv: Convolution, may_peel: bool) -> None:
    """Tile the root for registers, and compute all other ops, with the whole reduction, inside its register tile.

    After: ``for others: for rows, vector: { fill; for summed: for side_by_side: for unrolled: vector; epilogues }``.
    """
    tile = _sample_tile(s, conv, may_peel)
    s.tile(conv.root, {loop: 1 for loop in tile.sizes if loop not in tile.order}, fuse=True)
    s.tile(conv.root, tile.sizes, order=tile.order, fuse=True)
    for op in s.copies(*conv.ops):
        _tile_copy(s, conv, tile, op)
    if s.dispatch.other_ops:
        s.read_padding_in_place()
    s.fold_unit_dims()
    s.vectorize(*conv.ops)


def _sample_tile(s: Schedule, conv: Convolution, may_peel: bool) -> ConvolutionTile:
    op, lanes = conv.op, s.lanes(conv.op)
    vectors = vector_loops(conv, lanes)
    vector = s.sample_loop("vector_loop", vectors) if len(vectors) > 1 else vectors[0]
    multiple = vector_multiple(vector.extent, lanes)
    fits = s.extent(vector) % multiple == 0
    s.require(fits, f"the workgroup's {s.extent(vector)} do not hold vectors of {multiple}")
    rows = [loop for loop in sharing_loops(conv, vector) if s.extent(loop) > 1][:2]
    sizes = {loop: 1 for loop in conv.parallel if loop.extent > 1}
    tail = _sample_tail(s, s.extent(vector), [s.extent(loop) for loop in rows], lanes) if may_peel else DIVIDE
    sizes[vector] = s.sample_vector_tile("vector", vector, lanes, tail, most=MAX_VECTORS_PER_ROW)
    for loop in rows:
        sizes[loop] = _sample_rows(s, loop, tail)
    peeled = sum(s.extent(loop) % size != 0 for loop, size in sizes.items())
    s.require(tail == DIVIDE or peeled > 0, "no iteration is left over to peel")
    registers = math.prod(sizes[loop] for loop in rows) * accumulators_of(sizes[vector], lanes)
    s.require_accumulators(registers, [*sizes.values()])
    order = (*rows, vector)
    if rows:
        order = s.sample_order("order", order, still=[loop for loop in order if sizes[loop] == s.extent(loop)])
    _check_single_iterations(s, op, [(s.extent(loop), sizes[loop]) for loop in order])
    _check_scattered_rows(s, conv, vector, sizes, peeled)
    summed, unrolled = _sample_reductions(s, conv, registers * 2**peeled)
    side_by_side = _sample_side_by_side(s, conv, vector, [loop for loop in rows if sizes[loop] > 1])
    return ConvolutionTile(sizes, order, vector, lanes, side_by_side, summed, unrolled)


def _check_single_iterations(s: Schedule, op: LinalgOp, loops: Sequence[tuple[int, int]]) -> None:
    """Refuse temporaries above the size of the stack, where peeling leaves a single iteration of a loop.

    IREE 3.13 removes such a loop, and may then collect what this iteration computes on the stack: along the loops
    inside of it all that the workgroup has, along those around it one tile. It does not where the loop computes the
    whole result.

    Args:
        loops: (extent in the workgroup, tile size) of each loop, outermost first.
    """
    for place, (extent, size) in enumerate(loops):
        if size < extent < 2 * size:
            around, inside = [tile for _, tile in loops[:place]], [inner for inner, _ in loops[place + 1 :]]
            others = math.prod((*around, *inside))
            _require_on_stack(s, op, extent * others, collected=size * others)


def _check_scattered_rows(s: Schedule, conv: Convolution, vector: Loop, sizes: Mapping[Loop, int], peeled: int) -> None:
    """Refuse a workgroup's tile above the size of the stack, where rows, not vectors, walk the contiguous dimension.

    IREE 3.13 does not see that such a vector and the next row touch different elements. The sums stay in a tensor,
    whose buffer is the result's own. An epilogue writes into this buffer as well, so IREE copies the workgroup's tile,
    and for each peeled loop also the part of the tile that this loop leaves over.
    """
    along = conv.contiguous
    if conv.epilogues and along is not None and along is not vector and sizes.get(along, 1) > 1:
        elements = math.prod(s.extent(loop) for loop in conv.parallel)
        _require_on_stack(s, conv.op, elements, 1 + peeled)


def _require_on_stack(s: Schedule, op: LinalgOp, elements: int, copies: int = 1, *, collected: int = 0) -> None:
    """Refuse copies of a part of the result above the stack's size; one copy of the whole result is no temporary.

    Args:
        elements: Elements of the part.
        collected: Those of them that are copied; all by default.
    """
    if copies > 1 or elements * op.element_bytes != op.outputs[0].tensor.bytes:
        s.require_stack(copies * (collected or elements) * op.element_bytes, "parts of the result")


def _sample_tail(s: Schedule, vector: int, rows: Sequence[int], lanes: int) -> str:
    """Choose a tail strategy, where no good register tile divides the extents.

    Divisors have a small chance where they all make vectors of less than half a register: 41 channels would be
    computed as scalars.
    """
    longest = max(chunk(size, lanes) for size in range(1, lanes * MAX_VECTORS_PER_ROW + 1) if vector % size == 0)
    divisors = 1.0 if 2 * longest >= min(vector, lanes) else 0.1
    return s.sample_tail((PEEL,), weights=(divisors, 2.0)) if leaves_tails(vector, rows, lanes) else DIVIDE


def _sample_rows(s: Schedule, loop: Loop, tail: str) -> int:
    name = f"rows_{loop.name}"
    if tail == PEEL and not divides_well(s.extent(loop)):
        return s.sample_int(name, 1, MAX_ROWS)
    return s.sample_tile(name, loop, most=MAX_ROWS)


def _sample_reductions(s: Schedule, conv: Convolution, vectors: int) -> tuple[Loops, Loops]:
    """Choose the order of the reduction loops, and how many innermost loops are unrolled: (summed, unrolled)."""
    dims = conv.op.convolution_dims
    taps = [loop for d in dims.filter_loop if (loop := conv.loops[d]).extent > 1]
    channels = [loop for d in dims.input_channel if (loop := conv.loops[d]).extent > 1]
    order = [*channels, *taps]
    if taps and channels and s.sample_choice("innermost", ("channels", "filter")) == "channels":
        order = [*taps, *channels]
    unrolled = [vectors * math.prod(loop.extent for loop in order[start:]) for start in range(len(order) + 1)]
    most = MAX_PADDED_VECTORS if s.dispatch.other_ops else MAX_UNROLLED_VECTORS
    possible = [len(order) - start for start, count in enumerate(unrolled) if count <= most]
    count = s.sample_number("unrolled_loops", sorted(possible)) if len(possible) > 1 else 0
    start = len(order) - int(count)
    s.notes["unrolled_vectors"] = unrolled[start]
    return tuple(order[:start]), tuple(order[start:])


def _sample_side_by_side(s: Schedule, conv: Convolution, vector: Loop, rows: Sequence[Loop]) -> Loops:
    """Choose which rows are unrolled: all rows where the vector loop would not be the vector's last dimension."""
    image, _ = conv.op.image_and_filter
    strided = [loop for loop in rows if image.step(conv.position(loop)) > 1]
    free = [loop for loop in rows if loop not in strided]
    if not free:
        return _by_position(conv, strided)
    crossed = any(conv.position(loop) > conv.position(vector) for loop in free)
    unrolled = crossed or s.sample_choice("rows", ("vector", "unrolled")) == "unrolled"
    return _by_position(conv, rows if unrolled else strided)


def _by_position(conv: Convolution, loops: Sequence[Loop]) -> Loops:
    return tuple(sorted(loops, key=conv.position))


def _tile_copy(s: Schedule, conv: Convolution, tile: ConvolutionTile, op: LinalgOp) -> None:
    """Tile one op of a register tile down to the code to vectorize: one row after the other, each with all its taps.

    In this order the value of a row passes from tap to tap. In the opposite order IREE 3.13 keeps the rows in memory.
    """
    is_convolution = op is conv.op
    if is_convolution:
        s.tile(op, dict.fromkeys(tile.summed, 1), order=tile.summed)
    rows = dict.fromkeys(tile.side_by_side, 1)
    rows[tile.vector] = chunk(s.extent(tile.vector, op), tile.lanes)
    contiguous = contiguous_loop(op, conv.parallel)
    if op in conv.epilogues and contiguous in rows and contiguous is not tile.vector:
        del rows[contiguous]  # a block of rows and lanes is transposed in registers and then stored row by row
        rows[tile.vector] = min(rows[tile.vector], tile.lanes)
    unrolled: list[TileLoop] = []
    for sizes in [rows, *([{loop: 1} for loop in tile.unrolled] if is_convolution else [])]:
        shorter = {loop: size for loop, size in sizes.items() if size < s.extent(loop, op)}
        unrolled += s.tile(op, shorter)
    s.unroll(*unrolled)
