"""Attention as one dispatch on CPUs: products of queries and keys, their softmax, and sums of values.

A workgroup computes tiles of rows, one after the other. The scores of a tile lie on the stack, where their exponentials
take their place and the second product reads them: three dispatches write them to memory and read them again, twice.
The stack bounds how many rows a tile has.

Source: TVM has no such rule; the loop structure is that of ``contraction.py`` and ``reduction.py``. Unlike
FlashAttention (Dao et al. 2022), the keys are not tiled: the op that could carry a maximum from one tile of keys to the
next, ``iree_linalg_ext.online_attention``, is not a linalg op.
"""

from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers, patterns
from mlir_sched.transform_scripts.common import MAX_REDUCTION_STEP
from mlir_sched.transform_scripts.extents import vector_elements
from mlir_sched.transform_scripts.module import ScheduleModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Attention, Loop, Loops, reduction_loops

MAX_ROWS, MAX_REGISTER_ROWS = 64, 16
MAX_VECTORS_PER_ROW, MAX_LANES_IN_VECTORS = 4, 8
ROWS_POWER, COLUMNS_POWER = 2.0, 1.0
"""Powers of tile sizes in the chances of a draw: the more rows share a load of keys or values, the better. With chances
in proportion to rows alone, none of 16 draws for 1024 tokens was above two thirds of the best speed."""
FEW_NUMBERS_PER_ROW = 8
"""Numbers per row that the reductions keep on the stack, at most: maximum and sum, with their initial values."""


class AttentionTiling(ScheduleModule):
    """A module that tiles the rows of an attention, and computes a tile's scores, softmax and result in turn."""

    name: ClassVar[str] = "attention"
    backends: ClassVar[tuple[str, ...]] = ("llvm-cpu",)

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Attention | None:
        """Match an attention whose keys and features fill whole vectors."""
        found = matchers.attention(op, dispatch)
        if found is None:
            return None
        lanes = vector_elements(found.scores, target)
        return None if found.keys.extent % lanes or found.columns.extent % lanes else found

    def parallel(self, found: Attention, dispatch: Dispatch) -> Loops:
        """Return the loops of the rows: every tile of columns would compute all scores again."""
        del dispatch
        return (*found.others, found.rows)

    def schedule(self, s: Schedule, found: Attention) -> None:
        """Tile the rows and compute everything inside; then tile each op for registers, and vectorize."""
        rows = s.sample_tile("rows", found.rows, most=MAX_ROWS, power=ROWS_POWER)
        s.notes["row_tile"] = rows
        _check_stack(s, found, rows)
        s.tile(found.root, {**dict.fromkeys(found.others, 1), found.rows: rows}, fuse=True)
        _tile_scores(s, found)
        _tile_softmax(s, found)
        _tile_values(s, found)
        s.vectorize(found.score, found.scores, then=patterns.CONTRACT)  # in front of patterns that take sums apart
        across = () if found.largest.takes_f16_maxima else patterns.ACROSS_LANES
        s.vectorize(found.largest, found.weights, then=across)
        s.vectorize(found.values, found.root, *found.fills, then=patterns.CONTRACT)


def _check_stack(s: Schedule, found: Attention, rows: int) -> None:
    """Refuse rows whose scores and sums of values do not fit the stack."""
    per_row = found.keys.extent + found.columns.extent + FEW_NUMBERS_PER_ROW
    s.require_stack(rows * per_row * found.scores.element_bytes)


def _tile_scores(s: Schedule, found: Attention) -> None:
    """Compute scores in a register tile, with their fill and the op behind them."""
    tile = _sample_register_tile(s, found.score, found.rows, found.keys, "score")
    step = s.sample_tile("score_step", found.reduction, most=MAX_REDUCTION_STEP, power=0.0)
    s.require_registers(found.score, tile, step=step)
    still = [loop for loop in tile if tile[loop] == s.extent(loop)]
    order = s.sample_order("score_order", (found.rows, found.keys), still=still)
    s.tile(found.score, {loop: tile[loop] for loop in order}, order=order, fuse=True)
    s.tile(found.scores, {found.reduction: step})


def _tile_softmax(s: Schedule, found: Attention) -> None:
    """Find the largest score of a few rows at once, with partial results in lanes, then compute the exponentials."""
    unit = s.lanes(found.score)
    rows = s.sample_tile("softmax_rows", found.rows, most=MAX_REGISTER_ROWS, power=ROWS_POWER)
    lanes = s.sample_tile("lanes", found.keys, most=unit * MAX_LANES_IN_VECTORS, unit=unit, static=True)
    s.require_accumulators(rows * lanes // unit, [rows, lanes])
    s.tile(found.largest, {found.rows: rows})
    s.rfactor(found.largest, {reduction_loops(found.largest)[-1]: lanes})
    s.tile(found.weights, {found.rows: rows, found.keys: lanes})
    s.require_instructions(rows * lanes / unit, found.weights)


def _tile_values(s: Schedule, found: Attention) -> None:
    """Sum values in a register tile, and compute the result from the sums."""
    tile = _sample_register_tile(s, found.root, found.rows, found.columns, "value")
    step = s.sample_tile("value_step", found.keys, most=MAX_REDUCTION_STEP, power=0.0)
    s.require_registers(found.root, tile, step=step)
    s.tile(found.root, tile, fuse=(found.values,))
    s.tile(found.values, {found.keys: step})


def _sample_register_tile(s: Schedule, op: LinalgOp, rows: Loop, columns: Loop, what: str) -> dict[Loop, int]:
    """Draw vectors per row first, then at most as many rows as leave the accumulators in registers."""
    lanes = s.lanes(op)
    width = s.sample_tile(f"{what}_columns", columns, most=MAX_VECTORS_PER_ROW * lanes, unit=lanes, power=COLUMNS_POWER)
    most = min(MAX_REGISTER_ROWS, s.max_accumulators * lanes // width)
    return {rows: s.sample_tile(f"{what}_rows", rows, most=most, power=ROWS_POWER), columns: width}
