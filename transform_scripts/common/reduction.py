"""Reductions: the parts that all targets share."""

from __future__ import annotations

from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.module import ScheduleModule
from mlir_sched.transform_scripts.structures import Loops, Reduction


class ReductionModule(ScheduleModule):
    """A module that schedules a dispatch whose reductions all run along the rows of one result."""

    name: ClassVar[str] = "reduction"

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Reduction | None:
        """Match the first reduction of a dispatch of element-wise ops and reductions along the rows of one result."""
        del target
        return matchers.reduction(op, dispatch)

    def parallel(self, found: Reduction, dispatch: Dispatch) -> Loops:
        """Return the row loops of the root."""
        del dispatch
        return found.parallel
