"""Element-wise dispatches on GPUs with any number of loops and any extents: threads take single elements in turns."""

from __future__ import annotations

from typing import Any, ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.common.elementwise import check_instructions, steps_over
from mlir_sched.transform_scripts.gpu.on_threads import OnThreads
from mlir_sched.transform_scripts.gpu.thread_turns import distribute_in_turns
from mlir_sched.transform_scripts.module import MatchingModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Elementwise, parallel_loops


class LinearElementwise(OnThreads, MatchingModule):
    """A module that distributes tiles over workgroups, and the elements of a tile over threads in turns."""

    name: ClassVar[str] = "linear_elementwise"

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Elementwise | None:
        """Match a dispatch of element-wise ops and fills that reads element after element.

        Bodies that compute with loop indices are left: IREE 3.13 makes 64-bit remainders of the place of an element,
        which it cannot lower for Vulkan.
        """
        del target
        found = matchers.elementwise(op, dispatch)
        if found is None or any(other.reads_loop_index for other in found.ops):
            return None
        return None if any(steps_over(op, loop) for loop in parallel_loops(op)) else found

    def left_open(self, found: Elementwise, dispatch: Dispatch) -> dict[str, Any]:
        """Leave only lowering open."""
        del found, dispatch
        return {}

    def schedule(self, s: Schedule, found: Elementwise) -> None:
        """Distribute over workgroups, then element by element over threads.

        After: ``forall workgroups: forall elements of the tile, threads in turns: all ops on one element``.
        """
        check_instructions(s, 1)
        distribute_in_turns(s, found.root, found.loops)
        s.vectorize(*found.ops)
