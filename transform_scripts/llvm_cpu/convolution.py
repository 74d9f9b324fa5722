"""Direct convolutions and poolings on CPUs: any rank, stride, dilation, grouping and layout, with fill and epilogues.

One program spans the space. A register tile of the result, one vector loop by at most two rows, stays in registers
while all of the filter and the input channels are summed; fill and epilogues are computed in the same tile. Every
other loop is tiled by 1, so what is vectorized has no windows left: a product of a vector and a scalar, or of two
vectors. Rows stand in the vector (as a second dimension) or side by side, which is what a strided image needs.

A padded image (the ``fused-padding`` flags leave the padding in the dispatch) is not copied: after all tiling every
slice of it is a pixel, or a vector of channels, that lies inside of the image or outside.

No pattern may turn the products into contractions: on tiles whose unit dimensions were folded
``transfer_permutation_patterns`` cost up to 29 times (phase form of a transposed convolution, IREE 3.13 on Zen 4).

Source: the roles of the loops are those of MLIR's ``inferConvolutionDims``; the register tile is that of Georganas et
al., "Anatomy of High-Performance Deep Learning Convolutions on SIMD Architectures" (2018).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.common.clean_up import CLEAN_UP, clean_up
from mlir_sched.transform_scripts.common.convolution import Nest, match, row_loops, vector_loops
from mlir_sched.transform_scripts.common.extents import (
    ACCUMULATOR_SHARE,
    element_bytes,
    innermost_output_loop,
    sizes_for,
    vector_elements,
    vector_multiple,
)
from mlir_sched.transform_scripts.emitter import Handle
from mlir_sched.transform_scripts.module import Sketch, TransformModule
from mlir_sched.transform_scripts.schedule import Loop, Schedule, TiledOp

MAX_ROWS = 16
MAX_VECTORS_PER_ROW = 4
MAX_UNROLLED_VECTORS = 512
"""Multiply-add vector instructions in one straight-line tile; more only costs compile time and instruction cache."""
FOLD_UNIT_DIMS = (
    "linalg.fold_unit_extent_dims_via_slices",
    "canonicalization",
    "tensor.merge_consecutive_insert_extract_slice",
)
"""The vectorizer takes sums of loops in an indexing map only once all but one of them are gone."""


class Convolution(TransformModule):
    """Tiles a convolution with its fill and element-wise epilogues for registers.

    Args:
        peel: Also try to peel the iterations that a register tile leaves over, and not only tiles that divide.
    """

    name: ClassVar[str] = "convolution"
    backends: ClassVar[tuple[str, ...]] = ("llvm-cpu",)

    def __init__(self, peel: bool = True) -> None:
        self.peel = peel

    def extend(self, sketch: Sketch, op: LinalgOp, dispatch: Dispatch, target: Target) -> Iterable[Sketch]:
        """Add one program for a dispatch of [fill,] convolution [, element-wise ops on its result]."""
        nest = match(op, dispatch)
        if sketch.steps or nest is None or not vector_loops(op, vector_elements(op, target)):
            return (sketch,)
        step = self.step(lambda s: convolve(s, nest, self.peel))
        claimed = tuple(o.index for o in dispatch.ops)
        return (sketch, sketch.extended(self.name, step, claimed=claimed, parallel=dispatch.root.parallel_dims))


def chunk(size: int, lanes: int) -> int:
    """Return the largest part of a vector loop's tile that is one vector value: whole registers, or less than one.

    LLVM takes 14 s for a tile with vectors of 48 elements that takes it 0.5 s with 3 of 16.
    """
    return size if size <= lanes or size & (size - 1) == 0 else size & -size


@dataclass(frozen=True)
class RegisterTile:
    """A sampled register tile; loops are those of the convolution.

    Attributes:
        sizes: Size per parallel loop longer than 1.
        order: Its rows and its vector loop, outermost first; the loops around them are tiled by 1.
        vector: The vector loop.
        lanes: Elements of one vector register.
        side_by_side: Its rows that are unrolled; the others stand in the vector.
        summed: Reduction loops around the tile, outermost first.
        unrolled: Reduction loops inside of it, outermost first.
    """

    sizes: dict[int, int]
    order: tuple[int, ...]
    vector: int
    lanes: int
    side_by_side: tuple[int, ...]
    summed: tuple[int, ...]
    unrolled: tuple[int, ...]


def convolve(s: Schedule, nest: Nest, may_peel: bool) -> None:
    """Tile the root for registers, compute everything else inside its tile, run the whole reduction there.

    After: ``for others: for rows, vector: { fill; for summed: for side_by_side: for unrolled: vector; epilogues }``.
    """
    tile = _sample_tile(s, nest, may_peel)
    copies = _tile_root(s, nest, tile)
    clean_up(s)
    names = sorted({s.dispatch.ops[index].name for index in nest.ops})
    handles = s.emit.split(s.emit.match_ops(names), len(copies) * len(nest.ops))
    found = zip(((sizes, index) for sizes in copies for index in nest.ops), handles, strict=True)
    ops = [_cut(s.ops[index], handle, nest.loops[index], sizes) for (sizes, index), handle in found]
    for op in reversed(ops):  # the full tile last: it stays in s.ops
        _tile_copy(s, nest, tile, op)
    if s.dispatch.other_ops:
        _guard_padded_reads(s)
    s.emit.run_pass("linalg-generalize-named-ops")  # a fill has unit dimensions to fold, too
    clean_up(s)
    s.emit.apply_patterns(*FOLD_UNIT_DIMS)
    s.emit.cse()
    s.emit.vectorize(s.emit.match_ops(["linalg.generic"]))
    for index in (nest.convolution, *nest.epilogues):
        s.finish(s.ops[index])


def _guard_padded_reads(s: Schedule) -> None:
    """Read what is padded where it is, each vector under the condition that it is not padding; no copy is left.

    A tile of 1 along the padded dimensions lies inside or outside. Most conditions fold, or hold for a whole row.
    """
    s.emit.apply_patterns("tensor.merge_consecutive_insert_extract_slice", *CLEAN_UP)
    s.emit.run_pass("iree-codegen-fuse-tensor-pad-with-consumer")
    clean_up(s)
    s.emit.run_pass("iree-codegen-vectorize-tensor-pad")


def _sample_tile(s: Schedule, nest: Nest, may_peel: bool) -> RegisterTile:
    op, tile = s.dispatch.ops[nest.convolution], s.ops[nest.convolution].tile
    lanes = vector_elements(op, s.target)
    vectors = vector_loops(op, lanes)
    vector = vectors[0]
    if len(vectors) > 1:
        vector = int(s.sample_choice("vector_loop", [str(loop) for loop in vectors]))
    multiple = vector_multiple(op.extents[vector], lanes)
    s.require(tile[vector] % multiple == 0, f"the workgroup's {tile[vector]} do not hold vectors of {multiple}")
    rows = [loop for loop in row_loops(op, vector) if tile[loop] > 1][:2]
    sizes = {loop: 1 for loop in op.parallel_dims if op.extents[loop] > 1}
    peel = may_peel and _sample_peel(s, tile[vector], [tile[loop] for loop in rows], lanes)
    sizes[vector] = _sample_vector(s, tile[vector], lanes, peel)
    for loop in rows:
        sizes[loop] = _sample_rows(s, f"rows_{loop}", tile[loop], peel)
    whole = chunk(sizes[vector], lanes)
    registers = math.prod(sizes[loop] for loop in rows) * math.ceil(sizes[vector] / min(whole, lanes))
    most = int(s.target.vector_registers * ACCUMULATOR_SHARE)
    s.require(registers <= most, f"{registers} accumulators are more than {most} registers")
    s.notes["accumulator_registers"] = registers
    s.notes["edges_peel"] = peel
    order = s.sample_permutation("order", [str(loop) for loop in (*rows, vector)]) if rows else (str(vector),)
    _check_single_iterations(s, op, [(tile[int(loop)], sizes[int(loop)]) for loop in order])
    peeled = sum(tile[loop] % size != 0 for loop, size in sizes.items())
    _check_scattered_rows(s, nest, vector, sizes, peeled)
    summed, unrolled = _sample_reductions(s, op, registers * 2**peeled)
    side_by_side = _sample_side_by_side(s, op, vector, [loop for loop in rows if sizes[loop] > 1])
    return RegisterTile(sizes, tuple(map(int, order)), vector, lanes, side_by_side, summed, unrolled)


def _check_single_iterations(s: Schedule, op: LinalgOp, loops: Sequence[tuple[int, int]]) -> None:
    """Refuse temporaries above the stack, where peeling leaves one iteration of a loop.

    IREE 3.13 unwraps such a loop, and what the loops inside of it compute may be put together on the stack, unless it
    is the whole result.

    Args:
        s: The schedule.
        op: The convolution.
        loops: Extent in the workgroup and size of the tile of each loop, outermost first.
    """
    for place, (extent, size) in enumerate(loops):
        if size < extent < 2 * size:
            _require_on_stack(s, op, math.prod(inner for inner, _ in loops[place:]))


def _check_scattered_rows(s: Schedule, nest: Nest, vector: int, sizes: Mapping[int, int], peeled: int) -> None:
    """Refuse a workgroup's tile above the stack, where rows stand along the result and vectors across it.

    IREE 3.13 does not see that what such a vector writes is not what the next row reads. The sums stay in a tensor,
    for which it takes the result's own; an epilogue writes there, too, so a copy of the workgroup's tile is made, and
    one of the part of it that each peeled loop leaves.

    Args:
        s: The schedule.
        nest: The ops.
        vector: The vector loop.
        sizes: Sizes of the register tile.
        peeled: How many of the loops around it are peeled.
    """
    op, tile = s.dispatch.ops[nest.convolution], s.ops[nest.convolution].tile
    along = innermost_output_loop(op)
    if nest.epilogues and along is not None and along != vector and sizes.get(along, 1) > 1:
        _require_on_stack(s, op, math.prod(tile[loop] for loop in op.parallel_dims), 1 + peeled)


def _require_on_stack(s: Schedule, op: LinalgOp, elements: int, copies: int = 1) -> None:
    """Refuse temporary copies of a part of the result above the stack; a single whole one is no temporary."""
    part, most = elements * element_bytes(op), s.target.stack_bytes
    fits = copies * part <= most or (copies == 1 and part == op.outputs[0].tensor.bytes)
    s.require(fits, f"a part of {copies * part} bytes is above {most}")


def _sample_peel(s: Schedule, vector: int, rows: Sequence[int], lanes: int) -> bool:
    """Choose how edges are treated, where no good register tile divides the extents.

    Divisors have a small chance where all make vectors of less than half a register: 41 channels would be scalars.
    """
    uneven = (vector > lanes and vector % lanes != 0) or not all(map(_divides_well, rows))
    longest = max(chunk(size, lanes) for size in range(1, lanes * MAX_VECTORS_PER_ROW + 1) if vector % size == 0)
    divisors = 1.0 if 2 * longest >= min(vector, lanes) else 0.1
    return uneven and s.sample_choice("edges", ("divisor", "peel"), weights=(divisors, 2.0)) == "peel"


def _divides_well(extent: int) -> bool:
    """Say whether some good number of rows divides an extent."""
    return extent <= MAX_ROWS or any(extent % rows == 0 for rows in range(4, MAX_ROWS + 1))


def _sample_vector(s: Schedule, extent: int, lanes: int, peel: bool) -> int:
    if peel and extent > lanes and extent % lanes:
        return s.sample_number("vector", [lanes * v for v in (1, 2, 4) if lanes * v <= extent])
    (size,) = s.sample_perfect_tile(
        "vector",
        extent,
        1,
        max_innermost=lanes * MAX_VECTORS_PER_ROW,
        multiple_of=vector_multiple(extent, lanes),
    )
    return size


def _sample_rows(s: Schedule, name: str, extent: int, peel: bool) -> int:
    if peel and not _divides_well(extent):
        return s.sample_int(name, 1, MAX_ROWS)
    (size,) = s.sample_perfect_tile(name, extent, 1, max_innermost=MAX_ROWS)
    return size


def _sample_reductions(s: Schedule, op: LinalgOp, vectors: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Choose the order of the reduction loops, and how many of the innermost are unrolled."""
    dims = op.convolution_dims
    taps = [loop for loop in dims.filter_loop if op.extents[loop] > 1]
    channels = [loop for loop in dims.input_channel if op.extents[loop] > 1]
    order = [*channels, *taps]
    if taps and channels and s.sample_choice("innermost", ("channels", "filter")) == "channels":
        order = [*taps, *channels]
    unrolled = [vectors * math.prod(op.extents[loop] for loop in order[start:]) for start in range(len(order) + 1)]
    possible = [len(order) - start for start, count in enumerate(unrolled) if count <= MAX_UNROLLED_VECTORS]
    count = s.sample_number("unrolled_loops", sorted(possible)) if len(possible) > 1 else 0
    start = len(order) - int(count)
    s.notes["unrolled_vectors"] = unrolled[start]
    return tuple(order[:start]), tuple(order[start:])


def _sample_side_by_side(s: Schedule, op: LinalgOp, vector: int, rows: Sequence[int]) -> tuple[int, ...]:
    """Choose which rows are unrolled; all where the vector loop would not be the vector's last dimension."""
    image, _ = op.image_and_filter
    strided = [loop for loop in rows if image.step(loop) > 1]
    free = [loop for loop in rows if loop not in strided]
    if not free:
        return tuple(sorted(strided))
    unrolled = any(loop > vector for loop in free) or s.sample_choice("rows", ("vector", "unrolled")) == "unrolled"
    return tuple(sorted(rows if unrolled else strided))


def _tile_root(s: Schedule, nest: Nest, tile: RegisterTile) -> list[dict[int, int]]:
    """Tile the root loop by loop with everything fused, and cut off the edges.

    Returns:
        The sizes of the parallel loops in each copy of the tile that results, in program order: the full one first.
    """
    to_root = nest.loops[nest.root]
    others = [loop for loop in tile.sizes if loop not in tile.order]
    if others:
        root = s.ops[nest.root]
        s.fuse_producers(root, sizes_for(root.op, {to_root[loop]: 1 for loop in others}))
    uneven: list[Loop] = []
    sizes: dict[int, tuple[int, ...]] = dict.fromkeys(others, (1,))
    for loop in tile.order:
        root, size = s.ops[nest.root], tile.sizes[loop]
        rest = root.tile[to_root[loop]] % size
        sizes[loop] = (size, rest) if rest else (size,)
        _, made = s.fuse_producers(root, sizes_for(root.op, {to_root[loop]: size}))
        uneven.extend(made if rest else ())
    for cut_off in reversed(uneven):  # inner ones first, or their handles would be lost
        s.emit.peel(cut_off.handle)
    return [dict(zip(sizes, copy, strict=True)) for copy in product(*sizes.values())]


def _cut(op: TiledOp, handle: Handle, loops: dict[int, int], sizes: dict[int, int]) -> TiledOp:
    """Return an op as it is in one copy of the tile."""
    tile = list(op.tile)
    for loop, size in sizes.items():
        tile[loops[loop]] = min(tile[loops[loop]], size)
    return replace(op, handle=handle, tile=tuple(tile))


def _tile_copy(s: Schedule, nest: Nest, tile: RegisterTile, op: TiledOp) -> None:
    """Tile one op of a register tile down to what is vectorized; a row after the other, each with all its taps.

    In this order the value of a row passes from tap to tap. In the other IREE 3.13 keeps the rows in memory.
    """
    is_convolution = op.op.index == nest.convolution
    for loop in tile.summed if is_convolution else ():
        op, _ = s.tile(op, sizes_for(op.op, {loop: 1}))
    loops = nest.loops[op.op.index]
    rows = {loops[loop]: 1 for loop in tile.side_by_side}
    rows[loops[tile.vector]] = chunk(op.tile[loops[tile.vector]], tile.lanes)
    contiguous = innermost_output_loop(op.op)
    if op.op.index in nest.epilogues and contiguous in rows and contiguous != loops[tile.vector]:
        del rows[contiguous]  # a block of rows and lanes is transposed in registers, and its rows are stored
        rows[loops[tile.vector]] = min(rows[loops[tile.vector]], tile.lanes)
    unrolled: list[tuple[Loop, int]] = []
    for sizes in [rows, *([{loop: 1} for loop in tile.unrolled] if is_convolution else [])]:
        shorter = {loop: size for loop, size in sorted(sizes.items()) if size < op.tile[loop]}
        if shorter:
            trips = [op.tile[loop] // size for loop, size in shorter.items()]
            op, made = s.tile(op, sizes_for(op.op, shorter))
            unrolled.extend(zip(made, trips, strict=True))
    for made_loop, trip in reversed(unrolled):
        s.emit.unroll(made_loop.handle, trip)
