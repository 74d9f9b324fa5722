"""Reductions on GPUs to results of any extents: threads take single results in turns, and reduce one at a time."""

from __future__ import annotations

from typing import Any, ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.gpu.on_threads import OnThreads
from mlir_sched.transform_scripts.gpu.reduction import reduce_tile, reduced_by_threads
from mlir_sched.transform_scripts.gpu.thread_turns import distribute_in_turns
from mlir_sched.transform_scripts.module import MatchingModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Reduction


class LinearReduction(OnThreads, MatchingModule):
    """A module that distributes tiles over workgroups, and the results of a tile over threads in turns."""

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
