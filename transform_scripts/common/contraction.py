"""Contractions: matmul, batch matmul, vector times matrix, any transposition, any generic that contracts.

What every target shares: which dispatches these are, the roles of their loops, and the tiling of the reduction. How
the tile of one processor is computed is the target's own: a CPU core keeps caches and registers busy, a GPU thread has
registers alone.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.common.epilogues import corresponding_loops
from mlir_sched.transform_scripts.common.extents import (
    ACCUMULATOR_SHARE,
    innermost_output_loop,
    sizes_for,
    vector_elements,
)
from mlir_sched.transform_scripts.module import Sketch, TransformModule
from mlir_sched.transform_scripts.schedule import Loop, Schedule, TiledOp

MAX_REDUCTION_STEP = 16
CONTRACT_PATTERNS = ("vector.reduction_to_contract", "vector.transfer_permutation_patterns", "vector.sink_ops")
"""Needed before lowering, in a set of their own: without them a reduction step of 2 is 20 times slower."""


@dataclass(frozen=True)
class Roles:
    """The loops of a contraction by what tiling does with them (all are loops of the contraction itself).

    Attributes:
        columns: The loop of the result's contiguous dimension: the vector dimension.
        rows: The longest other parallel loop that only one input reads; None when there is none longer than 1.
        others: The remaining parallel loops, tiled by 1.
        reduction: The innermost reduction loop.
        outer_reductions: The remaining reduction loops, tiled by 1.
    """

    columns: int
    rows: int | None
    others: tuple[int, ...]
    reduction: int
    outer_reductions: tuple[int, ...]


def roles_of(op: LinalgOp) -> Roles | None:
    """Return the roles of a contraction's loops, or None when its result has no vector dimension."""
    columns = innermost_output_loop(op)
    dims = op.contraction_dims
    if columns is None or not dims.k or columns in dims.batch or op.extents[columns] == 1:
        return None
    opposite = dims.m if columns in dims.n else dims.n
    rows = max((d for d in opposite if op.extents[d] > 1), key=lambda d: op.extents[d], default=None)
    others = tuple(d for d in op.parallel_dims if d not in (columns, rows) and op.extents[d] > 1)
    return Roles(columns, rows, others, dims.k[-1], tuple(d for d in dims.k[:-1] if op.extents[d] > 1))


@dataclass(frozen=True)
class Nest:
    """The ops of a contraction dispatch: indices of the contraction, its fill and its epilogues in order."""

    contraction: int
    fill: int | None
    epilogues: tuple[int, ...]
    roles: Roles


def match(op: LinalgOp, dispatch: Dispatch) -> Nest | None:
    """Return the nest of a dispatch whose contraction is the op, or None when it is of another form."""
    if op.kind is not OpKind.CONTRACTION or dispatch.other_ops or len(dispatch.results) != 1:
        return None
    roles = roles_of(op)
    init = op.outputs[0].producer
    fill = init if init is not None and dispatch.ops[init].kind is OpKind.FILL else None
    epilogues = tuple(o.index for o in dispatch.ops[op.index + 1 :])
    known = {op.index, *epilogues, *([fill] if fill is not None else [])}
    elementwise = all(dispatch.ops[i].kind is OpKind.ELEMENTWISE for i in epilogues)
    if roles is None or not elementwise or len(known) != len(dispatch.ops):
        return None
    if epilogues and dispatch.results[0] != epilogues[-1]:
        return None
    return Nest(op.index, fill, epilogues, roles)


Program: TypeAlias = Callable[[Schedule, Nest], None]
"""Schedules the tile of a contraction dispatch that distribution leaves to one processor."""


class Contraction(TransformModule):
    """Tiles a contraction with its fill and element-wise epilogues, in one or more programs of a target."""

    name: ClassVar[str] = "contraction"

    @abstractmethod
    def programs(self) -> Mapping[str, Program]:
        """Return the programs by name."""

    def extend(self, sketch: Sketch, op: LinalgOp, dispatch: Dispatch, target: Target) -> Iterable[Sketch]:
        """Add the programs for a dispatch of [fill,] contraction [, element-wise ops on its result]."""
        del target
        nest = match(op, dispatch)
        if sketch.steps or nest is None:
            return (sketch,)
        claimed = tuple(o.index for o in dispatch.ops)
        parallel = dispatch.root.parallel_dims
        steps = {name: self.step(lambda s, run=run: run(s, nest)) for name, run in self.programs().items()}  # type: ignore[misc]
        return (
            sketch,
            *(
                sketch.extended(f"{self.name}.{name}", step, claimed=claimed, parallel=parallel)
                for name, step in steps.items()
            ),
        )


def accumulators(target: Target) -> int:
    """Return the vector registers that may hold results."""
    return int(target.vector_registers * ACCUMULATOR_SHARE)


def check_unrolled(s: Schedule, nest: Nest, rows: int, columns: int, step: int, most_vectors: int) -> None:
    """Refuse tiles whose accumulators do not fit the registers, or that unroll into too many instructions.

    Args:
        s: The schedule.
        nest: The contraction.
        rows, columns: Size of the accumulated tile; the columns are the vector dimension.
        step: Reduction iterations that are unrolled.
        most_vectors: Multiply-add vector instructions in one unrolled tile.
    """
    lanes = vector_elements(s.ops[nest.contraction].op, s.target)
    vectors = rows * math.ceil(columns / lanes)
    most = accumulators(s.target)
    s.require(vectors <= most, f"{rows}x{columns} accumulators take {vectors} registers of {most}")
    unrolled = vectors * step
    s.require(unrolled <= most_vectors, f"{unrolled} unrolled vectors are more than {most_vectors}")
    s.notes["accumulator_registers"] = vectors
    s.notes["unrolled_vectors"] = unrolled


def loops_of_root(s: Schedule, nest: Nest, root_index: int) -> dict[int, int]:
    """Return which loop of the root walks what each parallel loop of the contraction walks."""
    contraction, root = s.dispatch.ops[nest.contraction], s.dispatch.ops[root_index]
    if root_index == nest.contraction:
        return {loop: loop for loop in contraction.parallel_dims}
    return corresponding_loops(contraction, root, s.dispatch)


def tile_by_one(s: Schedule, op: TiledOp, loops: Iterable[int]) -> tuple[TiledOp, tuple[Loop, ...]]:
    """Tile some loops of an op to single iterations."""
    sizes = dict.fromkeys(loops, 1)
    return s.tile(op, sizes_for(op.op, sizes)) if sizes else (op, ())


def tile_reduction(s: Schedule, nest: Nest, step: int) -> None:
    """Tile the innermost reduction loop by a step and the outer ones to single iterations."""
    op = s.ops[nest.contraction]
    op, _ = tile_by_one(s, op, nest.roles.outer_reductions)
    s.tile(op, sizes_for(op.op, {nest.roles.reduction: step}))
