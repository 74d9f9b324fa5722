"""IREE's pipeline TileAndFuse with other tile sizes: the script sets a ``lowering_config`` and IREE does the rest.

Source: IREE 3.13, ``#iree_gpu.lowering_config`` (LLVMGPU/KernelConfig.cpp): ``workgroup``, ``thread`` and ``reduction``
count iterations.
"""

import math
from collections.abc import Mapping
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.common import MAX_REDUCTION_STEP, by_one
from mlir_sched.transform_scripts.gpu.contraction import MAX_THREAD_VECTORS
from mlir_sched.transform_scripts.gpu.shared_memory import fits
from mlir_sched.transform_scripts.gpu.thread_distribution import DIMENSIONS, distributed_loops, draw_threads
from mlir_sched.transform_scripts.llvm_gpu.lowering import translation_info
from mlir_sched.transform_scripts.module import DelegatingModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction, Loop, loop_of
from mlir_sched.transform_scripts.tracking.nest import Sharing, nest_of, shared_tiles, size_list

PROMOTE = "promote_operands = [0, 1]"


class LoweringConfig(DelegatingModule):
    """A module that draws tiles of threads for IREE's TileAndFuse pipeline."""

    name: ClassVar[str] = "lowering_config"
    backends: ClassVar[tuple[str, ...]] = ("cuda", "rocm")

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Contraction | None:
        """Match a contraction with its fill and epilogues, of at most three parallel loops."""
        del target
        mm = matchers.contraction(op, dispatch)
        return mm if mm is not None and 1 <= len(distributed_loops(op)) <= len(DIMENSIONS) else None

    def schedule(self, s: Schedule, found: Contraction) -> None:
        """Annotate the contraction and choose the pipeline for the function."""
        loops = tuple(loop_of(found.op, loop.position(found.op)) for loop in distributed_loops(found.op))
        workgroup, thread = draw_threads(s, found.op, loops)
        step = s.sample_tile("reduction_step", found.reduction, most=MAX_REDUCTION_STEP)
        s.require_unrolled(math.prod([*thread.values(), step]) // s.target.vector_elements(4), MAX_THREAD_VECTORS)
        reduction = {**by_one(found.outer_reductions), found.reduction: step}
        nest = nest_of(found.op, [("workgroup", workgroup), ("loop", reduction)])
        room = fits(s, Sharing(shared_tiles(found.op, nest.tile), 1))
        promote = room and s.sample_yes("promote", yes=1.0, no=1.0)
        lists = {"workgroup": workgroup, "thread": thread, "reduction": reduction}
        levels = [("workgroup", workgroup), ("loop", reduction), ("thread", thread)]
        tile_and_fuse(s, found, lists, [PROMOTE] if promote else [], int(s.notes["threads"]), levels)


def tile_and_fuse(
    s: Schedule,
    mm: Contraction,
    lists: Mapping[str, Mapping[Loop, int]],
    options: list[str],
    threads: int,
    levels: list[tuple[str, dict[Loop, int]]],
) -> None:
    """Leave the dispatch to the pipeline.

    Args:
        lists: The lists of tile sizes of the ``lowering_config``, as sizes by loop, by the name of the list.
        options: Further entries of the ``lowering_config`` in MLIR syntax.
        levels: The tiling levels that the pipeline will make, outermost first: (kind of level, sizes by loop).
    """
    assert s.target.gpu is not None
    entries = ", ".join([*(f"{key} = {size_list(mm.op, sizes)}" for key, sizes in lists.items()), *options])
    pipeline = translation_info("TileAndFuse", threads, s.target.gpu)
    s.delegate(mm.op, f"#iree_gpu.lowering_config<{{{entries}}}>", pipeline, levels)
