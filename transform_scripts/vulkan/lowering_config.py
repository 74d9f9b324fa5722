"""IREE's own SPIR-V pipeline with other tile sizes: the script sets a ``lowering_config`` and IREE does the rest.

Source: IREE 3.13, BaseVectorize with ``tile_sizes = [[workgroup], [thread], [reduction]]`` (SPIRV/KernelConfig.cpp).
"""

import math
from collections.abc import Mapping
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.common import MAX_REDUCTION_STEP
from mlir_sched.transform_scripts.gpu.contraction import MAX_THREAD_VECTORS
from mlir_sched.transform_scripts.gpu.elementwise import widens_narrow_integers
from mlir_sched.transform_scripts.gpu.thread_distribution import DIMENSIONS, distributed_loops, draw_threads
from mlir_sched.transform_scripts.module import DelegatingModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Loop, reduction_loops
from mlir_sched.transform_scripts.tracking.nest import size_list


class LoweringConfig(DelegatingModule):
    """A module that draws workgroup, thread and reduction tiles for IREE's BaseVectorize pipeline."""

    name: ClassVar[str] = "lowering_config"
    backends: ClassVar[tuple[str, ...]] = ("vulkan-spirv",)

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> LinalgOp | None:
        """Match a contraction with its fill and epilogues, or a single element-wise op, of at most three loops."""
        del target
        alone = op.kind is OpKind.ELEMENTWISE and len(dispatch.ops) == 1 and not dispatch.other_ops
        if not (alone or matchers.contraction(op, dispatch)) or (alone and widens_narrow_integers(op)):
            return None
        return op if 1 <= len(distributed_loops(op)) <= len(DIMENSIONS) else None

    def schedule(self, s: Schedule, found: LinalgOp) -> None:
        """Annotate the op and choose the pipeline for the function."""
        workgroup, thread = draw_threads(s, found, distributed_loops(found))
        levels: list[tuple[str, dict[Loop, int]]] = [("workgroup", workgroup), ("thread", thread)]
        if found.reduction_dims:
            levels.append(("loop", _sample_reduction(s, found, thread)))
        lists = ", ".join(size_list(found, sizes) for _, sizes in levels)
        size = ", ".join(map(str, s.workgroup_size))
        pipeline = f"pipeline = #iree_gpu.spirv_pipeline<BaseVectorize> workgroup_size = [{size}]"
        config = f"#iree_codegen.lowering_config<tile_sizes = [{lists}]>"
        s.delegate(found, config, f"#iree_codegen.translation_info<{pipeline}>", levels)


def _sample_reduction(s: Schedule, op: LinalgOp, thread: Mapping[Loop, int]) -> dict[Loop, int]:
    *outer, innermost = reduction_loops(op)
    step = s.sample_tile("reduction_step", innermost, most=MAX_REDUCTION_STEP)
    unrolled = math.prod([*thread.values(), step]) // s.target.vector_elements(4)
    s.require_unrolled(unrolled, MAX_THREAD_VECTORS)
    return {**dict.fromkeys(outer, 1), innermost: step}
