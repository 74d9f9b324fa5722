"""Dispatches that store the results of several ops on CPUs: half of a softmax, a sum with its norm, a product twice.

The last op is distributed over workgroups along the loops that divide every stored result, and all other ops are
computed inside. A workgroup's tile of a result that another op reads as well is written once and read from the caches.
Inside of a workgroup each op has loops of its own: no loop around several of them would hand on more than one result.

Source: ``transform.structured.fuse_into_containing_op``, which hands on results of fused ops from ``scf.forall`` alone.
"""

import math
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.emitter import Sampled
from mlir_sched.transform_scripts.extents import is_uneven, vector_multiple
from mlir_sched.transform_scripts.llvm_cpu.lowering import require_lanes
from mlir_sched.transform_scripts.module import ScheduleModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import (
    Loop,
    Loops,
    SeveralResults,
    are_crossed,
    contiguous_loop,
    parallel_loops,
    reduction_loops,
)
from mlir_sched.transform_scripts.verbs.draws import DIVIDE, PEEL

MAX_ROWS, MAX_VECTORS = 8, 8
MAX_FILLED_VECTORS = 256
"""Most vectors of a workgroup's tile of a fill, which is unrolled where no loop of its reader holds it."""


class SeveralResultsTiling(ScheduleModule):
    """A module that tiles every op of a workgroup on its own: element-wise ops, reductions and contractions."""

    name: ClassVar[str] = "several_results"
    backends: ClassVar[tuple[str, ...]] = ("llvm-cpu",)

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> SeveralResults | None:
        """Match the last op of a dispatch that stores the results of several.

        Maxima of f16 numbers become vectors only where a reduction by them keeps lanes.
        """
        del target
        without_lanes = (other for other in dispatch.ops if other.reduces and not _keeps_lanes(other))
        return None if any(op.takes_f16_maxima for op in without_lanes) else matchers.several_results(op, dispatch)

    def parallel(self, found: SeveralResults, dispatch: Dispatch) -> Loops:
        """Return the loops that divide every stored result."""
        del dispatch
        return found.parallel

    def schedule(self, s: Schedule, found: SeveralResults) -> None:
        """Tile each op for vectors, reductions with partial results in lanes, and vectorize."""
        s.require_stack(sum(s.points(op) * op.element_bytes for op in (*found.between, *found.copied)))
        computed = s.dispatch.beside_fills
        uneven = any(
            is_uneven(s.extent(loop), s.lanes(op)) for op in computed if (loop := _vector_loop(op)) is not None
        )
        tail = s.sample_tail((PEEL,) if uneven else ())
        at_once = tail == PEEL or any(op.takes_f16_maxima for op in computed)
        s.tile(found.root, {}, fuse=True)
        for op in computed:
            if _keeps_lanes(op):
                _tile_in_lanes(s, op, tail)
            else:
                _tile_in_vectors(s, op, tail)
            if not at_once:
                s.vectorize(op)
        _check_fills(s)
        if not at_once:
            s.vectorize(*s.dispatch.fills)
        else:
            s.vectorize(*computed, *s.dispatch.fills, tail=tail)


def _keeps_lanes(op: LinalgOp) -> bool:
    """Say whether the vectors of an op lie along its innermost reduction."""
    return op.reduces and not op.reduces_in_strides and (op.kind is OpKind.REDUCTION or matchers.runs_along_rows(op))


def _vector_loop(op: LinalgOp) -> Loop | None:
    """Return the loop that the vectors of an op lie along; None where the op has no such loop."""
    if _keeps_lanes(op):
        return reduction_loops(op)[-1]
    return contiguous_loop(op, parallel_loops(op))


def _tile_in_lanes(s: Schedule, op: LinalgOp, tail: str) -> None:
    """Tile a reduction by rows, and keep partial results in lanes along its innermost loop."""
    rows = _longer(s, op)
    if rows:
        size = s.sample_tile(f"rows_{op.index}", rows[-1], most=MAX_ROWS)
        s.tile(op, {**dict.fromkeys(rows[:-1], 1), rows[-1]: size})
    *outer, innermost = reduction_loops(op)
    lanes = s.sample_vector_tile(f"lanes_{op.index}", innermost, s.lanes(op), tail, most=MAX_VECTORS, static=True)
    require_lanes(s, op, lanes)
    s.require_registers(op, {loop: s.extent(loop, op) for loop in rows}, step=math.ceil(lanes / s.lanes(op)))
    s.rfactor(op, {**dict.fromkeys(outer, 1), innermost: lanes})


def _tile_in_vectors(s: Schedule, op: LinalgOp, tail: str) -> None:
    """Tile an op along its result's contiguous loop and one further loop; a sum then takes one term after the other.

    Crossed loops of a product change places.
    """
    loops = _longer(s, op)
    along = contiguous_loop(op, loops)
    others = [loop for loop in loops if loop is not along]
    tile: dict[Loop, int] = dict.fromkeys(others, 1)
    if along is not None:
        tile[along] = _sample_columns(s, op, along, tail)
    if others:
        tile[others[-1]] = s.sample_tile(f"rows_{op.index}", others[-1], most=MAX_ROWS)
    if op.reduces:
        s.require_registers(op, tile)
    s.require_instructions(math.prod(tile.values()) / s.lanes(op), op)
    s.tile(op, tile)
    if op.reduces:
        s.tile(op, dict.fromkeys(reduction_loops(op), 1))
    if op.kind is OpKind.CONTRACTION and along is not None and others and are_crossed(op, others[-1], along):
        s.interchange(op, others[-1], along)


def _sample_columns(s: Schedule, op: LinalgOp, along: Loop, tail: str) -> Sampled:
    """Draw the tile of the loop that vectors lie along; sums in a number of vectors that is no power of two are slow.

    A product with 48 columns took 15 times as long in tiles of 3 vectors as in tiles of one (Emerald Rapids).
    """
    name, lanes, extent = f"columns_{op.index}", s.lanes(op), s.extent(along)
    if op.reduces and (tail == DIVIDE or not is_uneven(extent, lanes)):
        unit = vector_multiple(extent, lanes)
        return s.sample_tiles(name, along, 1, most=lanes * MAX_VECTORS, unit=unit, power_of_two=True)[0]
    return s.sample_vector_tile(name, along, lanes, tail, most=MAX_VECTORS)


def _longer(s: Schedule, op: LinalgOp) -> list[Loop]:
    return [loop for loop in parallel_loops(op) if s.extent(loop) > 1]


def _check_fills(s: Schedule) -> None:
    for fill in s.dispatch.fills:
        vectors = s.points(fill) / s.lanes(fill)
        s.require(vectors <= MAX_FILLED_VECTORS, f"a fill of {vectors:.0f} vectors is above {MAX_FILLED_VECTORS}")
