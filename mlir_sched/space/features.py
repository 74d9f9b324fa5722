"""Cost-model features of one schedule: numbers read from its loop nest, in microseconds and without a compiler.

The groups follow MetaSchedule's per-store features (TVM ``per_store_feature.cc``): extents and parallelism, memory
footprints and reuse per tiling level, vector and register use. As in TVM, counts are scaled by ``log2(x + 1)``.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise

import numpy as np

from mlir_sched.payload import LinalgOp, OpKind
from mlir_sched.transform_scripts.extents import accumulators_of, pieces, registers_of, vector_elements
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.tracking.nest import TiledOp

LEVELS = 8
"""Tiling levels of the main nest that are kept, counted from the innermost."""
PER_LEVEL = 9
NOTES = (
    "accumulator_registers",
    "unrolled_vectors",
    "tail_peel",
    "tail_mask",
    "threads",
    "prefetched",
    "panel_bytes",
    "row_tile",
)
"""Notes that become features; a module may write other notes, which have no column."""
KINDS = (
    "contraction.registers",
    "contraction.cache",
    "contraction.threads",
    "dot_product",
    "convolution",
    "reduction",
    "elementwise",
    "lowering_config",
)
"""Beginnings of sketch names that have a column of their own."""
GLOBAL = 15
COUNT = GLOBAL + LEVELS * PER_LEVEL + len(NOTES) + len(KINDS)
"""Number of features."""
DIGEST = hashlib.sha256(repr((GLOBAL, LEVELS, PER_LEVEL, NOTES, KINDS)).encode()).hexdigest()[:8]
"""Tells features from others by how many there are and what notes and kinds they hold, not by how they are computed."""
WORKGROUPS, EVENNESS = 2, 3
"""Columns of the number of workgroups, scaled, and of the share of time in which cores that run them all have work."""


def featurise(schedule: Schedule, sketch: str) -> np.ndarray:
    """Return the features of a schedule, float32 [COUNT]; all of them are finite.

    Args:
        schedule: A finished run of a schedule program (emitting nothing is enough).
    """
    nest = max(schedule.nests, key=lambda n: n.op.scalar_ops, default=None)
    values: list[float] = [*_global(schedule, nest)]
    levels = [] if nest is None else _levels(schedule, nest)
    kept = levels[-LEVELS:]
    for level in kept:
        values.extend(level)
    values.extend([0.0] * (PER_LEVEL * (LEVELS - len(kept))))
    values.extend(_log(schedule.notes.get(name, 0.0)) for name in NOTES)
    values.extend(_kinds(sketch))
    return np.asarray(values, dtype=np.float32)


def _global(schedule: Schedule, nest: TiledOp | None) -> list[float]:
    dispatch = schedule.dispatch
    if nest is None:
        return [_log(dispatch.scalar_ops)] + [0.0] * (GLOBAL - 1)
    op, target = nest.op, schedule.target
    workgroups = _workgroups(nest)
    waves = math.ceil(workgroups / target.cores)
    contiguous = op.contiguous_dim
    vector = 1 if contiguous is None else nest.tile[contiguous]
    width = vector_elements(op, target)
    volume = math.prod(nest.tile)
    reduction = math.prod(nest.tile[d] for d in op.reduction_dims)
    return [
        _log(dispatch.scalar_ops),
        _log(op.footprint_bytes),
        _log(workgroups),
        workgroups / (waves * target.cores),
        _log(len(nest.levels)),
        _log(vector),
        float(vector % width == 0),
        _log(vector / width),
        _log(volume),
        _log(volume / reduction),
        _log(reduction),
        _log(len(dispatch.ops)),
        _log(sum(math.prod(n.tile) for n in schedule.nests)),
        _log(op.iterations / max(1, volume)),
        _log(_executed(nest, width, schedule.notes)),
    ]


def _executed(nest: TiledOp, lanes: int, notes: Mapping[str, float]) -> float:
    """Return how many elements are computed per element of the result's contiguous dimension, at least 1.

    What tiles leave over takes as long as a vector, or as one for each of its elements where it is kept as scalars.
    """
    along = nest.op.contiguous_dim
    if along is None:
        return 1.0
    extent, sizes = nest.op.extents[along], Counter({nest.op.extents[along]: 1})
    for level in nest.levels:
        parts = Counter[int]()
        for size, count in sizes.items():
            for part, times in pieces(size, level.tile[along]):
                parts[part] += count * times
        sizes = parts
    whole, masked, cut = nest.tile[along], notes.get("tail_mask"), notes.get("rest_in_vectors")
    registers = 0
    for size, count in sizes.items():
        each = math.ceil(size / lanes) if cut else _registers(nest.op, whole if masked else size, lanes)
        registers += count * each
    return registers * lanes / extent


def _registers(op: LinalgOp, size: int, lanes: int) -> int:
    """Return how many registers a tile of ``size`` neighbours takes: of sums that are kept, as LLVM keeps them."""
    if op.kind is OpKind.CONVOLUTION:  # computed value by value
        return accumulators_of(size, lanes)
    return registers_of(size, lanes) if op.reduction_dims else math.ceil(size / lanes)


def _levels(schedule: Schedule, nest: TiledOp) -> list[list[float]]:
    op, target = nest.op, schedule.target
    tiles = [op.extents, *(level.tile for level in nest.levels)]
    rows = []
    for outer, inner in pairwise(tiles):
        if outer == inner:
            continue  # a loop of one iteration
        trips = [-(-o // i) for o, i in zip(outer, inner, strict=True)]
        footprints = [operand.footprint_bytes(inner) for operand in op.operands]
        footprint = sum(footprints)
        rows.append(
            [
                _log(math.prod(trips)),
                _log(math.prod([trips[d] for d in op.reduction_dims])),
                _log(footprint),
                _log(math.prod(inner) / max(1, footprint)),
                footprint / max(1, target.l1_bytes) if footprint < 8 * max(1, target.l1_bytes) else 8.0,
                min(8.0, footprint / max(1, target.l2_bytes)),
                _log(footprints[len(op.inputs)]),
                0.0 if op.contiguous_dim is None else _log(trips[op.contiguous_dim]),
                float(max(d for d, count in enumerate(trips) if count > 1)),
            ]
        )
    return rows


def _workgroups(nest: TiledOp) -> int:
    first = nest.levels[0] if nest.levels else None
    if first is None or first.kind != "workgroup":
        return 1
    return math.prod(-(-e // t) for e, t in zip(nest.op.extents, first.tile, strict=True))


@lru_cache(maxsize=1024)
def _kinds(sketch: str) -> tuple[float, ...]:
    return tuple(float(sketch.startswith(kind)) for kind in KINDS)


def _log(number: float) -> float:
    return math.log2(number + 1.0)
