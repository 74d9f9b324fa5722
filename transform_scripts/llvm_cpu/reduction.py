"""Row reductions and normalisations on CPUs: sums, softmax, layer norm, matrix times vector.

Rows are distributed over workgroups and tiled; inside a row tile every op of the dispatch runs one after the other on
values that stay in cache. Each reduction keeps partial results in vector lanes and combines them once per row
(rfactor): in order, a floating-point sum would run at the latency of one addition per element.

Where several ops follow the first reduction, they may run row by row inside the row tile, and a row may be computed as
a whole, without loops: then what several ops compute of it, such as the exponentials of a softmax, is computed once.

Source: MetaSchedule's AddRFactor (TVM ``add_rfactor.cc``); ``transform.structured.tile_reduction_using_for``. Figures
are of a softmax of 256x256 on Zen 4, IREE 3.13.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.common.clean_up import clean_up
from mlir_sched.transform_scripts.common.extents import (
    MAX_INSTRUCTIONS,
    element_bytes,
    innermost_output_loop,
    instructions,
    powers_of_two,
    sizes_for,
    vector_elements,
    vector_multiple,
)
from mlir_sched.transform_scripts.module import ScheduleModule
from mlir_sched.transform_scripts.schedule import Loop, Schedule, TiledOp, product

MAX_ROWS = 16
MAX_LANES_IN_VECTORS = 8
MAX_COLUMNS_IN_VECTORS = 16
MAX_ROW_INSTRUCTIONS = 2560
"""Vector instructions of a row without loops, what ops share counted for each: 2300 in a softmax of 1024 columns."""
FEWEST_ROWS_TO_TRANSPOSE = 4
EXTREMA = ("arith.maxnumf", "arith.minnumf", "arith.maximumf", "arith.minimumf")
"""Reductions whose lanes LLVM combines one after the other, as it has to keep NaNs: 15 dependent steps per row."""
ACROSS_LANES = (
    "vector.reorder_multi_reduction_dims",
    "vector.multi_reduction_flattening",
    "vector.multi_reduction_unrolling",
)
"""Turn a reduction of the lanes of several rows into a transposition and element-wise steps, one row per lane."""
RECIPROCALS = "#arith.fastmath<arcp>"


class Reduction(ScheduleModule):
    """Schedules a dispatch whose reductions all run along the rows of one result.

    Args:
        reciprocals: Divide by multiplying with a reciprocal: one more rounding, and 15 % less time in a softmax.
    """

    name: ClassVar[str] = "reduction"
    backends: ClassVar[tuple[str, ...]] = ("llvm-cpu",)

    def __init__(self, reciprocals: bool = True) -> None:
        self.reciprocals = reciprocals

    def applies(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> bool:
        """Say whether this is the dispatch's first reduction and all its ops fit the scheme."""
        del target
        reductions = [o for o in dispatch.ops if reduces(o)]
        if not reductions or op.index != reductions[0].index or dispatch.other_ops or len(dispatch.results) != 1:
            return False
        known = all(reduces(o) or o.kind in (OpKind.FILL, OpKind.ELEMENTWISE) for o in dispatch.ops)
        if any(o.has_windows for o in dispatch.ops):  # a convolution; its lanes would overlap
            return False
        contractions = (o for o in dispatch.ops if o.kind is OpKind.CONTRACTION)
        return known and row_loops(dispatch) is not None and all(map(_runs_along_rows, contractions))

    def parallel(self, op: LinalgOp, dispatch: Dispatch) -> tuple[int, ...]:
        """Return the row loops of the root."""
        del op
        return row_loops(dispatch) or ()

    def schedule(self, s: Schedule, op: LinalgOp) -> None:
        """Tile rows, fuse the whole dispatch into them, split every reduction into lanes, vectorize."""
        if self.reciprocals and any("arith.divf" in o.body for o in s.dispatch.ops):
            s.emit.annotate(s.emit.match_ops(["arith.divf"]), "fastmath", RECIPROCALS)
        merged = _sample_merged(s)
        edges = Edges(_sample_peel(s, merged))
        s.notes["edges_peel"] = edges.peel
        _tile_rows(s, merged, edges)
        clean_up(s)
        if merged:
            s.emit.run_pass("iree-codegen-rematerialize-parallel-ops")
        s.rematch(without=merged)
        later = _tile_later_ops(s, op, merged)
        whole = () if edges.peel else _sample_whole(s, later or _computed(s, merged))
        lanes: dict[tuple[int, bool], int] = {}
        for payload in _computed(s, merged):
            if reduces(payload):
                _split_into_lanes(s, payload, lanes, edges, payload in later, payload in whole)
            else:
                tiled = _tile_columns(s, s.ops[payload.index], edges, payload in whole)
                if edges.peel:
                    s.finish(tiled)
                else:
                    s.vectorize(tiled)
        if edges.peel:
            _vectorize_peeled(s, edges)
        else:
            s.vectorize_fills()


@dataclass
class Edges:
    """What is left for the end where vectors do not divide the extents.

    Attributes:
        peel: Whether tiles are whole vectors, and the iterations that they leave over are peeled.
        uneven: The loops that are then peeled, outer ones first.
        across_lanes: Whether the lanes of several rows are then combined at once.
    """

    peel: bool
    uneven: list[Loop] = field(default_factory=list)
    across_lanes: bool = False

    def add(self, loops: Sequence[Loop]) -> None:
        """Keep those loops that have to be peeled."""
        self.uneven.extend(loop for loop in loops if not loop.divides)


def reduces(op: LinalgOp) -> bool:
    """Say whether the op has a reduction loop longer than 1."""
    kinds = (OpKind.REDUCTION, OpKind.CONTRACTION, OpKind.CONVOLUTION)
    return op.kind in kinds and any(op.extents[d] > 1 for d in op.reduction_dims)


def row_loops(dispatch: Dispatch) -> tuple[int, ...] | None:
    """Return the loops of the root that no reduction of the dispatch runs along, or None if there is no such split.

    For a root that reduces these are its parallel loops; for an element-wise root, the loops it shares with the
    reduced values it reads.
    """
    root = dispatch.root
    if reduces(root):
        return root.parallel_dims
    rows = set(root.parallel_dims)
    reads_reduced = False
    for operand in root.inputs:
        if operand.producer is not None and reduces(dispatch.ops[operand.producer]):
            reads_reduced = True
            rows &= set(operand.dims)
    return tuple(sorted(rows)) if reads_reduced else None


def _runs_along_rows(op: LinalgOp) -> bool:
    """Say whether a contraction is a sum over the rows of a matrix, and not a product that reuses both inputs.

    A vector times a row-major matrix walks the matrix in columns: by lanes it is 10 times slower than by registers.
    """
    dims = op.contraction_dims
    longest = [max((op.extents[d] for d in loops), default=1) for loops in (dims.m, dims.n)]
    largest = max(op.inputs, key=lambda operand: operand.tensor.elements)
    return min(longest) == 1 and op.reduction_dims[-1] in largest.indexing_map[-1].dims


def _runs_along_columns(op: LinalgOp) -> bool:
    """Say whether a reduction walks its largest input in strides; then its vectors lie across the rows, one each."""
    last = max(op.inputs, key=lambda operand: operand.tensor.elements).indexing_map[-1:]
    return not any(d in op.reduction_dims for expr in last for d in expr.dims)


def _has_column_reductions(s: Schedule) -> bool:
    return any(reduces(op) and _runs_along_columns(op) for op in s.dispatch.ops)


def _sample_merged(s: Schedule) -> tuple[int, ...]:
    """Choose whether element-wise ops between reductions are computed again in each of their readers.

    Kept values take stack and, where they share the result's buffer, copies: merged, a layer norm of 128x768 that
    keeps its centred rows runs 3 times faster.
    """
    root, ops = s.dispatch.root, s.dispatch.ops
    between = tuple(o.index for o in ops if o.kind is OpKind.ELEMENTWISE and o.index != root.index)
    if not between or any(o.name != "linalg.generic" for o in ops if o.kind is not OpKind.FILL):
        return ()
    return between if s.sample_choice("recompute", ("yes", "no"), weights=(3.0, 1.0)) == "yes" else ()


def _sample_peel(s: Schedule, merged: Sequence[int]) -> bool:
    """Choose how edges are treated, where some extent along which vectors lie is no multiple of a vector.

    Without a divisor near a vector's elements the lanes are few, or one: a dot product of 100003 floats runs in
    scalars, and 11 times faster with peeled lanes.
    """
    root = s.ops[s.dispatch.root.index]
    extents = []
    for op in _computed(s, merged):
        if reduces(op) and len(op.reduction_dims) > 1:
            return False  # lanes are those of the innermost of several loops, whose handle is not known
        if reduces(op) and not _runs_along_columns(op):
            extents.append(op.extents[op.reduction_dims[-1]])
    rows = [d for d in row_loops(s.dispatch) or () if root.op.extents[d] > 1]
    if rows and _has_column_reductions(s):
        extents.append(root.tile[rows[-1]])
    uneven = any(_is_uneven(extent, vector_elements(root.op, s.target)) for extent in extents)
    return uneven and s.sample_choice("edges", ("divisor", "peel")) == "peel"


def _is_uneven(extent: int, width: int) -> bool:
    return extent > width and extent % width != 0


def _vectors_within(extent: int, width: int, most: int) -> list[int]:
    """Return the sizes of 1, 2, 4, ... vectors that fit an extent."""
    return [width * vectors for vectors in powers_of_two(most) if width * vectors <= extent]


def _vectorize_peeled(s: Schedule, edges: Edges) -> None:
    """Cut the last iterations off the uneven loops, inner ones first, and vectorize what results."""
    for loop in reversed(edges.uneven):
        s.emit.peel(loop.handle)
    clean_up(s)
    s.emit.vectorize(s.emit.match_ops(["linalg.fill", "linalg.generic", "linalg.reduce"]))
    if edges.across_lanes:
        s.emit.apply_patterns(*ACROSS_LANES)


def _tile_rows(s: Schedule, merged: tuple[int, ...], edges: Edges) -> None:
    root = s.ops[s.dispatch.root.index]
    loops = [d for d in row_loops(s.dispatch) or () if root.op.extents[d] > 1]
    if not loops:
        return
    extent, width = root.tile[loops[-1]], vector_elements(root.op, s.target)
    if edges.peel and _has_column_reductions(s) and _is_uneven(extent, width):
        rows = s.sample_number("rows", _vectors_within(extent, width, MAX_LANES_IN_VECTORS))
    else:
        (rows,) = s.sample_perfect_tile(
            "rows",
            extent,
            1,
            max_innermost=width * MAX_LANES_IN_VECTORS if _has_column_reductions(s) else MAX_ROWS,
            multiple_of=vector_multiple(extent, width) if _has_column_reductions(s) else 1,
        )
    sizes = dict.fromkeys(loops[:-1], 1) | {loops[-1]: rows}
    edges.add(s.fuse_producers(root, sizes_for(root.op, sizes))[1])
    _check_temporaries(s, merged)


def _computed(s: Schedule, merged: Sequence[int]) -> tuple[LinalgOp, ...]:
    """Return the ops that are scheduled one by one: neither fills nor merged."""
    return tuple(o for o in s.dispatch.ops if o.kind is not OpKind.FILL and o.index not in merged)


def _tile_later_ops(s: Schedule, first: LinalgOp, merged: Sequence[int]) -> tuple[LinalgOp, ...]:
    """Choose whether the ops after the first reduction run row by row inside the row tile; return them if so.

    The first reduction then combines the lanes of many rows at once, while the others may keep a row in registers.
    """
    root = s.ops[s.dispatch.root.index]
    loops = [d for d in row_loops(s.dispatch) or () if root.tile[d] > 1]
    later = tuple(o for o in _computed(s, merged) if o.index > first.index)
    if not loops or reduces(root.op) or not any(map(reduces, later)) or _has_column_reductions(s):
        return ()
    if s.sample_choice("later_rows", ("tile", "single"), weights=(1.0, 2.0)) == "tile":
        return ()
    _, (loop, *_) = s.tile(root, sizes_for(root.op, {loops[-1]: 1}))
    for other in reversed(later):
        if other.index != root.op.index:
            _, loop = s.fuse_into(s.ops[other.index], loop)
    clean_up(s)
    s.rematch(without=merged)
    return later


def _sample_whole(s: Schedule, ops: Sequence[LinalgOp]) -> Sequence[LinalgOp]:
    """Choose whether the rows of some ops are computed without loops over columns; return the ops if so."""
    rows = {d for d in row_loops(s.dispatch) or () if s.ops[s.dispatch.root.index].tile[d] > 1}
    if rows or len(ops) == 1:
        return ()
    count = sum(instructions(o, product(s.ops[o.index].tile) / vector_elements(o, s.target)) for o in ops)
    if count > MAX_ROW_INSTRUCTIONS or s.sample_choice("row", ("whole", "parts"), weights=(2.0, 1.0)) == "parts":
        return ()
    return ops


def _split_into_lanes(
    s: Schedule, op: LinalgOp, lanes: dict[tuple[int, bool], int], edges: Edges, later: bool, whole: bool
) -> None:
    """Split a reduction into lanes, as many as other reductions of the same extent in the same row loop."""
    innermost = op.reduction_dims[-1]
    extent = op.extents[innermost]
    sizes = {d: op.extents[d] if whole else 1 for d in op.reduction_dims}
    if not whole and not _runs_along_columns(op):
        if (extent, later) not in lanes:
            lanes[extent, later] = _sample_lanes(s, op, f"{'later_' if later else ''}lanes_{extent}", edges)
        sizes[innermost] = lanes[extent, later]
    tile = s.ops[op.index].tile
    partial, combine, loop = s.split_reduction_into_lanes(s.ops[op.index], sizes_for(op, sizes))
    across = op.body[-1] in EXTREMA and product([tile[d] for d in op.parallel_dims]) >= FEWEST_ROWS_TO_TRANSPOSE
    if edges.peel:
        edges.add([loop])
        edges.across_lanes |= across
    else:
        s.emit.vectorize(partial)
        s.emit.vectorize(combine)
        if across:
            s.emit.apply_patterns(*ACROSS_LANES)
    s.finish(s.ops[op.index])


def _sample_lanes(s: Schedule, op: LinalgOp, name: str, edges: Edges) -> int:
    width = vector_elements(op, s.target)
    extent = op.extents[op.reduction_dims[-1]]
    if edges.peel and _is_uneven(extent, width):
        lanes = s.sample_number(name, _vectors_within(extent, width, MAX_LANES_IN_VECTORS), static=True)
    else:
        (lanes,) = s.sample_perfect_tile(
            name,
            extent,
            1,
            max_innermost=width * MAX_LANES_IN_VECTORS,
            multiple_of=vector_multiple(extent, width),
            static=True,
        )
    rows = product([s.ops[op.index].tile[d] for d in op.parallel_dims])
    registers = rows * max(1, lanes // width)
    s.require(registers <= 2 * s.target.vector_registers, f"{rows} rows x {lanes} lanes take {registers} registers")
    _check_instructions(s, op, registers)
    s.notes["accumulator_registers"] = registers
    return lanes


def _tile_columns(s: Schedule, op: TiledOp, edges: Edges, whole: bool) -> TiledOp:
    """Tile an element-wise op of a row tile along its contiguous column loop, and its other column loops by 1.

    A result that is stored transposed is contiguous along the rows; its columns are then tiled by a few.
    """
    if whole:
        return op
    columns = [d for d in op.op.parallel_dims if op.tile[d] > 1 and _is_column(s, op.op, d)]
    if columns:
        op = _tile_column_loops(s, op, columns, edges)
    vectors = product([op.tile[d] for d in op.op.parallel_dims]) / vector_elements(op.op, s.target)
    _check_instructions(s, op.op, vectors)
    return op


def _tile_column_loops(s: Schedule, op: TiledOp, columns: list[int], edges: Edges) -> TiledOp:
    width = vector_elements(op.op, s.target)
    contiguous = innermost_output_loop(op.op)
    loop = contiguous if contiguous in columns else columns[-1]
    extent = op.tile[loop]
    if edges.peel and loop == contiguous and _is_uneven(extent, width):
        size = s.sample_number(f"columns_{op.op.index}", _vectors_within(extent, width, MAX_COLUMNS_IN_VECTORS))
    else:
        (size,) = s.sample_perfect_tile(
            f"columns_{op.op.index}",
            extent,
            1,
            max_innermost=width * MAX_COLUMNS_IN_VECTORS if loop == contiguous else MAX_ROWS,
            multiple_of=vector_multiple(extent, width) if loop == contiguous else 1,
        )
    op, loops = s.tile(op, sizes_for(op.op, dict.fromkeys(columns, 1) | {loop: size}))
    edges.add(loops)
    return op


def _check_instructions(s: Schedule, op: LinalgOp, vectors: float) -> None:
    """Refuse a tile whose straight-line code is too long."""
    count = instructions(op, vectors)
    s.require(count <= MAX_INSTRUCTIONS, f"{count} vector instructions in a tile are more than {MAX_INSTRUCTIONS}")


def _is_column(s: Schedule, op: LinalgOp, loop: int) -> bool:
    """Say whether a loop of an element-wise op is a column loop: not tiled as a row."""
    return op.extents[loop] == s.ops[op.index].tile[loop]


def _check_temporaries(s: Schedule, merged: tuple[int, ...]) -> None:
    """Every value between ops of a row tile lives on the stack."""
    root = s.dispatch.root
    gone = (root.index, *merged)
    between = [o for o in s.dispatch.ops if o.index not in gone and o.kind is not OpKind.FILL]
    total = sum(_result_bytes(o, s.ops[o.index].tile) for o in between)
    if any(_shares_buffer(o, root) for o in between):
        workgroup, tile = s.ops[root.index].levels[0].tile, s.ops[root.index].tile
        total += _result_bytes(root, workgroup) if workgroup != tile else 0
    s.require(total <= s.target.stack_bytes, f"temporaries of {total} bytes are above {s.target.stack_bytes}")


def _shares_buffer(op: LinalgOp, root: LinalgOp) -> bool:
    """Say whether an op of element-wise kind writes into the ``tensor.empty`` that the root writes into.

    IREE merges equal ones. Inside a loop over row tiles bufferization then copies the workgroup's whole tile.
    """
    return op.kind is OpKind.ELEMENTWISE and op.outputs[0].tensor == root.outputs[0].tensor


def _result_bytes(op: LinalgOp, tile: tuple[int, ...]) -> int:
    return product([tile[d] for d in op.parallel_dims]) * element_bytes(op)
