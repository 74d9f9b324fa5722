"""Contractions on GPUs whose threads share what they read: a workgroup copies each step of the reduction for all."""

import math
from typing import Any, ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers, patterns
from mlir_sched.transform_scripts.common import OnThreads, tile_reduction
from mlir_sched.transform_scripts.gpu.contraction import MAX_THREAD_VECTORS
from mlir_sched.transform_scripts.gpu.shared_memory import (
    distribute_over_workgroups,
    mapping,
    sample_step,
    shared_loops,
)
from mlir_sched.transform_scripts.gpu.thread_distribution import draw_threads
from mlir_sched.transform_scripts.module import MatchingModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction

MAX_SHARED_STEP = 64


class SharedContraction(OnThreads, MatchingModule):
    """A module that reads both inputs of a contraction through shared memory; each thread computes a register tile.

    The module distributes the dispatch, too: the loop over the reduction is between workgroups and threads.
    """

    name: ClassVar[str] = "shared_contraction"

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Contraction | None:
        """Match a dispatch of fill, contraction [, element-wise ops on its result] whose ops have the same loops."""
        del target
        mm = matchers.contraction(op, dispatch)
        return mm if mm is not None and shared_loops(mm) else None

    def left_open(self, found: Contraction, dispatch: Dispatch) -> dict[str, Any]:
        """Leave only lowering open."""
        del found, dispatch
        return {}

    def schedule(self, s: Schedule, found: Contraction) -> None:
        """Copy a step of the reduction, then accumulate the step in the registers of every thread.

        After: ``forall workgroups: { forall threads: fill; for k step kr: { copies; forall threads: contract };
        forall threads: epilogues }``.
        """
        loops = shared_loops(found)
        workgroup, thread = draw_threads(s, found.root, loops)
        unrolled = MAX_THREAD_VECTORS * s.lanes(found.op) // math.prod(thread.values())
        step = sample_step(s, found, workgroup, int(s.notes["threads"]), most=min(MAX_SHARED_STEP, unrolled))
        s.require_registers(found.op, thread, step=step, most_vectors=MAX_THREAD_VECTORS)
        distribute_over_workgroups(s, found, workgroup)
        tile_reduction(s, found, step)
        s.share(found.op)
        for op in found.ops[:2]:  # the fill and the contraction
            s.distribute(op, thread, mapping(op, loops, "thread"), over="thread")
        if found.epilogues:
            forall = s.distribute(found.root, thread, mapping(found.root, loops, "thread"), over="thread")
            s.fuse(*found.epilogues[:-1], into=forall)
        s.vectorize(*found.ops, then=patterns.CONTRACT)
