"""Contractions on GPUs: the tile of a thread is a register tile, and only the reduction is tiled further.

``threads`` keeps the accumulators of a thread in registers while it walks the whole reduction, and computes fill and
epilogues in the same tile.
"""

from collections.abc import Mapping

from mlir_sched.transform_scripts import patterns
from mlir_sched.transform_scripts.common import MAX_REDUCTION_STEP, ContractionModule, OnThreads, tile_reduction
from mlir_sched.transform_scripts.module import ScheduleProgram
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction

MAX_THREAD_VECTORS = 256
"""Most multiply-add vector instructions of one thread; with more, drivers compile for seconds to minutes (lavapipe)."""


class ContractionTiling(OnThreads, ContractionModule):
    """A module that tiles a contraction so that each thread accumulates its tile in registers."""

    def programs(self) -> Mapping[str, ScheduleProgram]:
        """Return the one program."""
        return {"threads": threads}


def threads(s: Schedule, mm: Contraction) -> None:
    """Run the whole reduction in the tile of a thread.

    After: ``forall threads: { fill; for k step kr: contract; epilogues }``.
    """
    tile = {loop: s.extent(loop) for loop in (*mm.others, *mm.tiled)}
    step = s.sample_tile("reduction_step", mm.reduction, most=MAX_REDUCTION_STEP)
    s.require_registers(mm.op, tile, step=step, most_vectors=MAX_THREAD_VECTORS)
    tile_reduction(s, mm, step)
    s.vectorize(*mm.ops, then=patterns.CONTRACT)
