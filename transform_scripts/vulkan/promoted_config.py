"""IREE's pipeline whose threads share what they read, with other sizes: the script sets a ``lowering_config``.

Source: IREE 3.13, MatmulPromoteVectorize with ``tile_sizes = [[workgroup and reduction]]``, in which a thread's tile
follows from the size of the workgroup (SPIRV/KernelConfig.cpp, SPIRV/Passes.cpp). It is IREE's own choice for products
on NVIDIA's and AMD's targets.
"""

import math
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.gpu.contraction import MAX_THREAD_VECTORS
from mlir_sched.transform_scripts.gpu.shared_contraction import MAX_SHARED_STEP
from mlir_sched.transform_scripts.gpu.shared_memory import fits, sample_step, shared_loops
from mlir_sched.transform_scripts.gpu.thread_distribution import draw_threads
from mlir_sched.transform_scripts.module import DelegatingModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction
from mlir_sched.transform_scripts.tracking.nest import Sharing, numbers_of, shared_tiles, size_list
from mlir_sched.transform_scripts.vulkan.steps_ahead import MAX_DEPTH, PADDING_BYTES, StepsAhead, sample_steps_ahead

MAX_READ = 1024
"""Most elements that a thread reads from shared memory in a step, once per step under way and once more: all are
unrolled. With 1152 and 2176 elements Mesa's software device took 16 and 28 s to compile a kernel, with fewer at most
7."""


class PromotedConfig(DelegatingModule):
    """A module that draws workgroup, thread and reduction tiles for IREE's MatmulPromoteVectorize pipeline."""

    name: ClassVar[str] = "promoted_config"
    backends: ClassVar[tuple[str, ...]] = ("vulkan-spirv",)

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Contraction | None:
        """Match a contraction with one reduction whose threads can share what they read."""
        del target
        mm = matchers.contraction(op, dispatch)
        return mm if mm is not None and not mm.outer_reductions and shared_loops(mm) else None

    def schedule(self, s: Schedule, found: Contraction) -> None:
        """Annotate the contraction and choose the pipeline for the function."""
        workgroup, thread = draw_threads(s, found.op, shared_loops(found))
        s.require(s.workgroup_size[0] > 1, "IREE does not share the copies among threads of which there is one along x")
        unrolled = MAX_THREAD_VECTORS * s.lanes(found.op) // math.prod(thread.values())
        step = sample_step(s, found, workgroup, int(s.notes["threads"]), most=min(MAX_SHARED_STEP, unrolled))
        sizes = {**workgroup, found.reduction: step}
        ahead = _sample_steps_ahead(s, found, Sharing(shared_tiles(found.op, numbers_of(found.op, sizes)), 1), step)
        tiles = shared_tiles(found.op, numbers_of(found.op, {**thread, found.reduction: step}))
        read = (ahead.depth + 1) * sum(math.prod(tile.shape) for tile in tiles)
        s.require(read <= MAX_READ, f"{read} elements read per thread are more than {MAX_READ}")
        levels = [("workgroup", workgroup), ("loop", {found.reduction: step}), ("thread", thread)]
        size = ", ".join(map(str, s.workgroup_size))
        pipeline = f"pipeline = #iree_gpu.spirv_pipeline<MatmulPromoteVectorize> workgroup_size = [{size}]"
        config = f"#iree_codegen.lowering_config<tile_sizes = [{size_list(found.op, sizes)}]>"
        s.delegate(found.op, config, f"#iree_codegen.translation_info<{pipeline}, {ahead.attributes}>", levels)


def _sample_steps_ahead(s: Schedule, mm: Contraction, sharing: Sharing, step: int) -> StepsAhead:
    """Draw how many steps are under way, and when a step is stored.

    A step that is stored early (stage 0) has a buffer more than there are steps under way.
    """
    return sample_steps_ahead(
        s,
        [depth for depth in range(1, MAX_DEPTH + 1) if depth < mm.reduction.extent // step],
        lambda ahead: fits(s, sharing, ahead.depth + 1 - ahead.stage, PADDING_BYTES),
        "no step of the reduction can be under way while another is computed",
    )
