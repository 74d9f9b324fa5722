"""Element-wise dispatches: the parts that all targets share."""

from __future__ import annotations

from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.module import ScheduleModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Elementwise, Loop


class ElementwiseModule(ScheduleModule):
    """A module that schedules dispatches of element-wise ops and fills; each target decides how a tile is walked."""

    name: ClassVar[str] = "elementwise"
    gathers: ClassVar[bool] = False
    """Whether it schedules ops that read elements at computed places."""

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Elementwise | None:
        """Match the root of a dispatch of element-wise ops and fills."""
        del target
        return matchers.elementwise(op, dispatch, gathers=self.gathers)


def steps_over(op: LinalgOp, loop: Loop) -> bool:
    """Say whether an input is read along a loop in any other way than element after element."""
    position = loop.position(op)
    return any(position in expr.dims and not expr.is_dim for o in op.inputs for expr in o.indexing_map)


def check_instructions(s: Schedule, vectors: float) -> None:
    """Refuse tiles of ``vectors`` vectors of the whole dispatch if their code would be too long; note their number."""
    s.require_instructions(vectors, *s.dispatch.ops)
    s.notes["unrolled_vectors"] = vectors
