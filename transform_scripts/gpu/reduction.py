"""Reductions on GPUs whose threads have results of their own: each thread walks all that a result is reduced from.

A thread keeps its accumulators in registers. Where results are adjacent in what is read, as in sums of columns, a
thread may have a vector of them; where rows are contiguous, it walks one row after the other, in vectors along the row.
Values between two reductions are computed again where they are read, because IREE would put them into memory that all
threads of a workgroup write: only reduced values are kept, in registers.
"""

from typing import Any, ClassVar

from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.common import MAX_REDUCTION_STEP, OnThreads, ReductionModule, by_one
from mlir_sched.transform_scripts.gpu.contraction import MAX_THREAD_VECTORS
from mlir_sched.transform_scripts.gpu.elementwise import reads_narrow_integers
from mlir_sched.transform_scripts.gpu.subgroup_reduction import walked_by_subgroups
from mlir_sched.transform_scripts.gpu.thread_turns import distribute_in_turns
from mlir_sched.transform_scripts.module import MatchingModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Loops, Reduction, parallel_loops, reduction_loops

MAX_ROW = 64
"""Most elements of a row that a thread walks although subgroups could: neighbouring threads read rows far apart."""
MAX_COLUMN_STEP = 16
"""Most elements of a row of the result that a thread computes at once."""


class ReductionTiling(OnThreads, ReductionModule):
    """A module whose threads each reduce a tile of results; the tiles divide the extents."""

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Reduction | None:
        """Match reductions to several results, with element-wise ops, but not long rows that subgroups walk."""
        return reduced_by_threads(op, dispatch, target)

    def parallel(self, found: Reduction, dispatch: Dispatch) -> Loops:
        """Return the loops over results longer than 1."""
        del dispatch
        return found.rows

    def schedule(self, s: Schedule, found: Reduction) -> None:
        """Reduce the tile of a thread as :func:`reduce_tile` does."""
        reduce_tile(s, found)


def reduced_by_threads(op: LinalgOp, dispatch: Dispatch, target: Target) -> Reduction | None:
    """Match reductions to several results, each of which one thread computes, but not long rows that subgroups walk.

    Narrow integers are left out (:mod:`~mlir_sched.transform_scripts.gpu.elementwise`).
    """
    found = matchers.reduction(op, dispatch)
    if found is None or not found.rows or any(reads_narrow_integers(each) for each in found.ops):
        return None
    if any(each.reduces and each.kind is not OpKind.REDUCTION for each in found.ops):
        return None
    return None if _is_long(found) and walked_by_subgroups(found, target) else found


def _is_long(found: Reduction) -> bool:
    return found.first.extents[-1] > MAX_ROW and all(op.element_bytes == 4 for op in found.ops)


def reduce_tile(s: Schedule, found: Reduction) -> None:
    """Tile and vectorize every op of a dispatch that is distributed over threads.

    After: ``for rows: { for each reduction: { fill; for k step: acc += }; for columns: root }``. Where results are
    adjacent in what all reductions read, the rows of the thread are reduced at once, without the loop over them.

    Raises:
        IllegalTraceError: The accumulators do not fit the registers, or the code of a step is too long.
    """
    root = found.root
    adjacent = all(op.reduces_in_strides for op in found.ops if op.reduces)
    s.tile(root, {} if adjacent else by_one(loop for loop in found.rows if s.extent(loop) > 1), fuse=True)
    inlined = found.recomputable
    s.inline(*inlined)
    for op in found.ops:
        if op.reduces:
            _walk(s, op)
    if columns := [loop for loop in _columns(found) if loop.extent > 1]:
        step = s.sample_tile("columns", columns[-1], most=MAX_COLUMN_STEP)
        s.tile(root, by_one(columns[:-1]) | {columns[-1]: step})
    s.vectorize(*(op for op in found.ops if op not in inlined))


def _walk(s: Schedule, op: LinalgOp) -> None:
    """Draw the step of a reduction's innermost loop longer than 1, and tile the loop by this step, the others by 1."""
    *outer, innermost = (loop for loop in reduction_loops(op) if loop.extent > 1)
    step = s.sample_tile(f"step_{op.index}", innermost, most=MAX_REDUCTION_STEP)
    tile = {loop: s.extent(loop) for loop in parallel_loops(op)}
    s.require_registers(op, tile, step=step, most_vectors=MAX_THREAD_VECTORS)
    s.tile(op, by_one(outer) | {innermost: step})


def _columns(found: Reduction) -> Loops:
    """Return the root's loops that a reduction of the dispatch runs along."""
    rows = {loop.position(found.root) for loop in found.parallel}
    return tuple(loop for loop in parallel_loops(found.root) if loop.position(found.root) not in rows)


class LinearReduction(OnThreads, MatchingModule):
    """A module for results of any extents: tiles go to workgroups, their results to threads in turns."""

    name: ClassVar[str] = "linear_reduction"

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Reduction | None:
        """Match what :class:`~.reduction.ReductionTiling` matches."""
        return reduced_by_threads(op, dispatch, target)

    def left_open(self, found: Reduction, dispatch: Dispatch) -> dict[str, Any]:
        """Leave only lowering open."""
        del found, dispatch
        return {}

    def schedule(self, s: Schedule, found: Reduction) -> None:
        """Distribute over workgroups, then result by result over threads.

        After: ``forall workgroups: forall results, threads in turns:`` what :func:`~.reduction.reduce_tile` makes.
        """
        distribute_in_turns(s, found.root, found.rows)
        reduce_tile(s, found)
