"""Row reductions and normalisations on CPUs: sums, softmax, layer norm, matrix times vector.

Rows are distributed over workgroups and tiled; inside a row tile every op of the dispatch runs one after the other on
values that stay in cache. Each reduction keeps partial results in vector lanes and combines them once per row
(rfactor): summed in order, a row of floating-point numbers takes the latency of one addition per element.

Where several ops follow the first reduction, they may run row by row inside the row tile, and a row may be computed as
a whole, without loops: values that several ops compute of the row, such as the exponentials of a softmax, are then
computed once.

Source: MetaSchedule's AddRFactor (TVM ``add_rfactor.cc``); ``transform.structured.tile_reduction_using_for``. Figures
are of a softmax of 256x256 on Zen 4, IREE 3.13.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import patterns
from mlir_sched.transform_scripts.common import ReductionModule
from mlir_sched.transform_scripts.extents import instructions
from mlir_sched.transform_scripts.llvm_cpu.lowering import require_lanes
from mlir_sched.transform_scripts.llvm_cpu.templates.reduction import leaves_tails, reduction_templates
from mlir_sched.transform_scripts.llvm_cpu.templates.shares import equal_shares
from mlir_sched.transform_scripts.module import Template
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Loop, Reduction, contiguous_loop, parallel_loops, reduction_loops
from mlir_sched.transform_scripts.tracking.nest import points
from mlir_sched.transform_scripts.verbs.draws import DIVIDE, PEEL

MAX_ROWS = 16
MAX_LANES_IN_VECTORS = 8
MAX_COLUMNS_IN_VECTORS = 16
MAX_ROW_INSTRUCTIONS = 2560
"""Most vector instructions of a row without loops, shared values counted per op: a softmax of 1024 columns has 2300."""
FEWEST_ROWS_TO_TRANSPOSE = 4
EXTREMA = ("arith.maxnumf", "arith.minnumf", "arith.maximumf", "arith.minimumf")
"""Reductions whose lanes LLVM combines one by one, because it has to keep NaNs: 15 dependent steps per row."""
RECIPROCALS = "#arith.fastmath<arcp>"


class ReductionTiling(ReductionModule):
    """A module that tiles rows, computes the whole dispatch in the row tile, and keeps partial results in lanes.

    Args:
        reciprocals: Whether to divide by multiplying with a reciprocal: one more rounding, but 15 % less time in a
            softmax.
    """

    backends: ClassVar[tuple[str, ...]] = ("llvm-cpu",)

    def __init__(self, reciprocals: bool = True) -> None:
        self.reciprocals = reciprocals

    def templates(self, found: Reduction, dispatch: Dispatch, target: Target) -> Iterable[Template]:
        """Return rows and lanes that hide the latency of an addition."""
        shares = equal_shares(dispatch, self.parallel(found, dispatch), target)
        return reduction_templates(found, shares, target)

    def schedule(self, s: Schedule, found: Reduction) -> None:
        """Tile rows, fuse the whole dispatch into them, split every reduction into lanes, vectorize."""
        if self.reciprocals and any("arith.divf" in op.body for op in found.ops):
            s.annotate("fastmath", RECIPROCALS, on="arith.divf")
        inlined = _sample_inlined(s, found)
        computed = [op for op in found.ops if op.kind is not OpKind.FILL and op not in inlined]
        rows = Rows(found, tuple(computed), _sample_tail(s, found))
        _tile_rows(s, rows)
        s.inline(*inlined)
        later = _tile_later_ops(s, rows)
        whole = () if rows.tail == PEEL else _sample_whole(s, rows, later or rows.computed)
        lanes: dict[tuple[int, bool], int] = {}
        across = False
        for op in rows.computed:
            if op.reduces:
                across |= _keep_lanes(s, rows, op, lanes, later=op in later, whole=op in whole)
            elif op not in whole:
                _tile_columns(s, rows, op)
            if not rows.at_once:
                s.vectorize(op, then=patterns.ACROSS_LANES if op.reduces and _combines_rows(s, op) else ())
        if rows.at_once:
            _vectorize_at_once(s, rows, across=across)
        else:
            s.vectorize(*found.fills)


@dataclass(frozen=True)
class Rows:
    """The data that the parts of the program share.

    Attributes:
        found: The dispatch.
        computed: The ops that are scheduled one by one: all but fills and inlined ops.
        tail: Tail strategy for the iterations that vectors leave over.
    """

    found: Reduction
    computed: tuple[LinalgOp, ...]
    tail: str

    @property
    def across(self) -> bool:
        """Whether the vectors of any reduction lie across the rows."""
        return self.found.in_strides

    @cached_property
    def takes_f16_maxima(self) -> bool:
        """Whether any op takes maxima of f16 numbers."""
        return any(op.takes_f16_maxima for op in self.computed)

    @property
    def at_once(self) -> bool:
        """Whether all ops are vectorized at once, behind peeling or behind the pass that widens maxima of f16."""
        return self.tail == PEEL or self.takes_f16_maxima

    @property
    def folds(self) -> bool:
        """Whether ops are vectorized without unit dimensions: so is a reduction by widened maxima, without lanes."""
        return self.across and self.takes_f16_maxima


def _vectorize_at_once(s: Schedule, rows: Rows, *, across: bool) -> None:
    """Vectorize all ops; ``across`` says whether the lanes of several rows are combined at once."""
    if rows.folds:
        s.peel()
        s.fold_unit_dims()
    tail = DIVIDE if rows.folds else rows.tail
    s.vectorize(*rows.computed, *rows.found.fills, tail=tail, then=patterns.ACROSS_LANES if across else ())


def _sample_inlined(s: Schedule, found: Reduction) -> tuple[LinalgOp, ...]:
    """Choose whether element-wise ops between reductions are inlined: rematerialised in each of their readers.

    Values that are kept take space on the stack and, where they share the result's buffer, need copies: a layer norm
    of 128x768 that keeps its centred rows runs 3 times faster when these are inlined.
    """
    between = found.recomputable
    return between if between and s.sample_yes("recompute", yes=3.0, no=1.0) else ()


def _sample_tail(s: Schedule, found: Reduction) -> str:
    """Choose a tail strategy, where an extent along which vectors lie is no multiple of a vector.

    An extent without a divisor close to the number of elements of a vector allows few lanes, or one: a dot product of
    100003 floats runs as scalar code, and 11 times faster with peeled lanes.
    """
    rows = s.extent(found.rows[-1]) if found.rows else 1
    return s.sample_tail((PEEL,) if leaves_tails(found, rows, s.lanes(found.root)) else ())


def _tile_rows(s: Schedule, rows: Rows) -> None:
    """Tile the rows of the root and compute the whole dispatch inside."""
    root, loops = rows.found.root, rows.found.rows
    if not loops:
        s.tile(root, {}, fuse=True)
        return
    if rows.across:
        size = s.sample_vector_tile("rows", loops[-1], s.lanes(root), rows.tail, most=MAX_LANES_IN_VECTORS)
    else:
        size = s.sample_tile("rows", loops[-1], most=MAX_ROWS)
    s.tile(root, {**dict.fromkeys(loops[:-1], 1), loops[-1]: size}, fuse=True)
    _check_temporaries(s, rows)


def _tile_later_ops(s: Schedule, rows: Rows) -> tuple[LinalgOp, ...]:
    """Choose whether the ops after the first reduction run row by row inside the row tile; return them if so.

    The first reduction then combines the lanes of many rows at once, while the later ops may keep a row in registers.
    """
    found = rows.found
    loops = [loop for loop in found.rows if s.extent(loop) > 1]
    later = tuple(op for op in rows.computed if op.index > found.first.index)
    if not loops or found.root.reduces or not any(op.reduces for op in later) or rows.across:
        return ()
    if s.sample_choice("later_rows", ("tile", "single"), weights=(1.0, 2.0)) == "tile":
        return ()
    s.tile(found.root, {loops[-1]: 1}, fuse=[op for op in later if op is not found.root])
    return later


def _sample_whole(s: Schedule, rows: Rows, ops: Sequence[LinalgOp]) -> Sequence[LinalgOp]:
    """Choose whether the rows of ``ops`` are computed without loops over columns; return the ops if so."""
    if len(ops) == 1 or any(s.extent(loop) > 1 for loop in rows.found.rows):
        return ()
    count = sum(instructions(op, math.prod(s.tile_of(op)) / s.lanes(op)) for op in ops)
    if count > MAX_ROW_INSTRUCTIONS or s.sample_choice("row", ("whole", "parts"), weights=(2.0, 1.0)) == "parts":
        return ()
    return ops


def _keep_lanes(
    s: Schedule, rows: Rows, op: LinalgOp, lanes: dict[tuple[int, bool], int], *, later: bool, whole: bool
) -> bool:
    """Split a reduction into lanes, as many as in the other reductions of the same extent in the same row loop.

    Returns:
        Whether the lanes of several rows are combined at once.
    """
    loops = reduction_loops(op)
    innermost = loops[-1]
    if rows.folds and op.takes_f16_maxima:
        s.tile(op, dict.fromkeys(loops, 1))
        return False
    sizes = {loop: loop.extent if whole else 1 for loop in loops}
    if not whole and not op.reduces_in_strides:
        if (innermost.extent, later) not in lanes:
            name = f"{'later_' if later else ''}lanes_{innermost.extent}"
            lanes[innermost.extent, later] = _sample_lanes(s, rows, op, innermost, name)
        sizes[innermost] = lanes[innermost.extent, later]
    s.rfactor(op, sizes)
    return not rows.takes_f16_maxima and _combines_rows(s, op)


def _combines_rows(s: Schedule, op: LinalgOp) -> bool:
    """Say whether the lanes of several rows are transposed and combined at once."""
    return op.body[-1] in EXTREMA and s.points(op) >= FEWEST_ROWS_TO_TRANSPOSE


def _sample_lanes(s: Schedule, rows: Rows, op: LinalgOp, loop: Loop, name: str) -> int:
    width = s.lanes(op)
    lanes = s.sample_vector_tile(name, loop, width, rows.tail, most=MAX_LANES_IN_VECTORS, static=True)
    count = s.points(op)
    registers = count * max(1, lanes // width)
    require_lanes(s, op, lanes)
    s.require(registers <= 2 * s.target.vector_registers, f"{count} rows x {lanes} lanes take {registers} registers")
    s.require_instructions(registers, op)
    s.notes["accumulator_registers"] = registers
    return lanes


def _tile_columns(s: Schedule, rows: Rows, op: LinalgOp) -> None:
    """Tile an element-wise op of a row tile along its contiguous column loop, and its other column loops by 1.

    A result that is stored transposed is contiguous along the rows; its columns then have small tiles.
    """
    columns = [loop for loop in parallel_loops(op) if 1 < s.extent(loop) == loop.extent]
    if columns:
        along = contiguous_loop(op, columns)
        loop = along or columns[-1]
        size = _sample_columns(s, rows, op, loop, contiguous=along is not None)
        s.tile(op, {**dict.fromkeys(columns, 1), loop: size})
    s.require_instructions(s.points(op) / s.lanes(op), op)


def _sample_columns(s: Schedule, rows: Rows, op: LinalgOp, loop: Loop, *, contiguous: bool) -> int:
    name = f"columns_{op.index}"
    if not contiguous:
        return s.sample_tile(name, loop, most=MAX_ROWS)
    return s.sample_vector_tile(name, loop, s.lanes(op), rows.tail, most=MAX_COLUMNS_IN_VECTORS)


def _check_temporaries(s: Schedule, rows: Rows) -> None:
    """Refuse row tiles whose values between ops, which live on the stack, do not fit it."""
    root = rows.found.root
    between = [op for op in rows.computed if op is not root]
    total = sum(s.points(op) * op.element_bytes for op in between)
    if any(_shares_buffer(op, root) for op in between):
        workgroup = s.levels_of(root)[0].tile
        total += points(root, workgroup) * root.element_bytes if workgroup != s.tile_of(root) else 0
    s.require_stack(total)


def _shares_buffer(op: LinalgOp, root: LinalgOp) -> bool:
    """Say whether an element-wise op will write into the same ``tensor.empty`` as the root.

    IREE merges equal ``tensor.empty`` ops. Inside a loop over row tiles, bufferization then copies the workgroup's
    whole tile.
    """
    return op.kind is OpKind.ELEMENTWISE and op.outputs[0].tensor == root.outputs[0].tensor
