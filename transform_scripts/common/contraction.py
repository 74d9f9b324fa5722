"""Contractions: matmul, batch matmul, vector times matrix, any transposition, any generic that contracts.

All targets share the module that matches contractions, and the tiling of the reduction. How one processor computes its
tile is left to each target: a CPU core uses caches and registers, a GPU thread only registers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.module import ScheduleModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction, Loop

MAX_REDUCTION_STEP = 16


class ContractionModule(ScheduleModule):
    """A module that tiles a contraction with its fill and element-wise epilogues; each target adds the programs."""

    name: ClassVar[str] = "contraction"

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Contraction | None:
        """Match a dispatch of [fill,] contraction [, element-wise ops on its result]."""
        del target
        return matchers.contraction(op, dispatch)


def by_one(loops: Iterable[Loop]) -> dict[Loop, int]:
    """Return the sizes that tile loops to single iterations."""
    return dict.fromkeys(loops, 1)


def tile_reduction(s: Schedule, mm: Contraction, step: int) -> None:
    """Tile the outer reduction loops to single iterations, and the innermost reduction loop by a step."""
    s.tile(mm.op, by_one(mm.outer_reductions))
    s.tile(mm.op, {mm.reduction: step})
