"""Element-wise dispatches on GPUs: a thread computes its tile as vectors, or takes single elements in turns."""

import math
from typing import Any, ClassVar

from mlir_sched.payload import ELEMENT_BYTES, Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.common import ElementwiseModule, OnThreads, check_instructions, steps_over
from mlir_sched.transform_scripts.gpu.thread_turns import distribute_in_turns
from mlir_sched.transform_scripts.module import MatchingModule
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


class LinearElementwise(OnThreads, MatchingModule):
    """A module for any number of loops and any extents: tiles go to workgroups, their elements to threads in turns."""

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


def reads_narrow_integers(op: LinalgOp) -> bool:
    """Say whether an op reads integers narrower than 32 bits."""
    types = {operand.tensor.element_type for operand in op.inputs}
    return any(name.startswith("i") and ELEMENT_BYTES[name] < 4 for name in types)


def widens_narrow_integers(op: LinalgOp) -> bool:
    """Say whether an op reads integers narrower than 32 bits and widens signed integers.

    On devices without such integers, IREE 3.13 takes them out of 32-bit words without their sign, and widens a vector
    of them as it is: -94 becomes 162 (found on lavapipe, with vectors of 8 bytes; single bytes and matrix products are
    right). IREE's own pipelines make such code, too. The numeric check finds it.
    """
    return "arith.extsi" in op.body and reads_narrow_integers(op)
