"""Element-wise dispatches: what every target shares."""

from __future__ import annotations

from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.common.extents import MAX_INSTRUCTIONS, innermost_output_loop, instructions
from mlir_sched.transform_scripts.module import ScheduleModule
from mlir_sched.transform_scripts.schedule import Schedule


class Elementwise(ScheduleModule):
    """Schedules dispatches whose every op is element-wise. How a tile is walked is the target's own."""

    name: ClassVar[str] = "elementwise"

    def applies(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> bool:
        """Say whether every op is element-wise and all are read by the root alone."""
        del target
        if op.index != dispatch.root.index or dispatch.other_ops or len(dispatch.results) != 1:
            return False
        if innermost_output_loop(op) is None or op.iterations == 1:
            return False
        return all(o.kind in (OpKind.ELEMENTWISE, OpKind.FILL) for o in dispatch.ops)


def check_instructions(s: Schedule, vectors: float) -> None:
    """Refuse tiles of so many vectors whose code would be too long."""
    count = sum(instructions(o, vectors) for o in s.dispatch.ops)
    s.require(count <= MAX_INSTRUCTIONS, f"a tile of {count} vector instructions is above {MAX_INSTRUCTIONS}")
    s.notes["unrolled_vectors"] = vectors
