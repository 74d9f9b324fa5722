"""Element-wise dispatches: what every target shares."""

from __future__ import annotations

from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.common.extents import MAX_INSTRUCTIONS, instructions
from mlir_sched.transform_scripts.module import ScheduleModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Elementwise


class ElementwiseModule(ScheduleModule):
    """Schedules dispatches whose every op is element-wise. How a tile is walked is the target's own."""

    name: ClassVar[str] = "elementwise"

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Elementwise | None:
        """Match the root of a dispatch whose every op is element-wise, or a fill."""
        del target
        return matchers.elementwise(op, dispatch)


def check_instructions(s: Schedule, vectors: float) -> None:
    """Refuse tiles of so many vectors whose code would be too long."""
    count = sum(instructions(op, vectors) for op in s.dispatch.ops)
    s.require(count <= MAX_INSTRUCTIONS, f"a tile of {count} vector instructions is above {MAX_INSTRUCTIONS}")
    s.notes["unrolled_vectors"] = vectors
