"""Element-wise dispatches on GPUs: a thread computes its whole tile as vectors."""

from __future__ import annotations

import math

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.common.elementwise import ElementwiseModule, check_instructions, steps_over
from mlir_sched.transform_scripts.gpu.narrow_integers import widens_narrow_integers
from mlir_sched.transform_scripts.gpu.on_threads import OnThreads
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Elementwise, parallel_loops


class ElementwiseTiling(OnThreads, ElementwiseModule):
    """A module that vectorizes every op on the tile of a thread."""

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Elementwise | None:
        """Match a dispatch of element-wise ops and fills that reads element after element, and widens no bytes."""
        found = super().match(op, dispatch, target)
        if found is None or any(map(widens_narrow_integers, found.ops)):
            return None
        return None if any(steps_over(op, loop) for loop in parallel_loops(op)) else found

    def schedule(self, s: Schedule, found: Elementwise) -> None:
        """Vectorize the ops of the dispatch, which are already distributed over threads."""
        check_instructions(s, math.prod(s.tile_of(found.root)) / s.lanes(found.root))
        s.vectorize(*found.ops)
