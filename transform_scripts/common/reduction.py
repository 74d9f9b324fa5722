"""Reductions: the parts that all targets share."""

from __future__ import annotations

from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp, OpKind
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


def runs_along_columns(op: LinalgOp) -> bool:
    """Say whether a reduction walks its largest input in strides; its vectors then lie across rows, one per lane."""
    last = max(op.inputs, key=lambda operand: operand.tensor.elements).indexing_map[-1:]
    return not any(d in op.reduction_dims for expr in last for d in expr.dims)


def between_reductions(found: Reduction) -> tuple[LinalgOp, ...]:
    """Return the element-wise ops that make no result; none where IREE's pass cannot rematerialise them."""
    between = tuple(op for op in found.ops if op.kind is OpKind.ELEMENTWISE and op is not found.root)
    generic = all(op.name == "linalg.generic" for op in found.ops if op.kind is not OpKind.FILL)
    return between if generic else ()
