"""IREE's own SPIR-V pipeline under other tile sizes: the script sets a ``lowering_config`` and IREE does the rest.

Source: IREE 3.13, BaseVectorize with ``tile_sizes = [[workgroup], [thread], [reduction]]`` (SPIRV/KernelConfig.cpp).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.common.contraction import MAX_REDUCTION_STEP, match
from mlir_sched.transform_scripts.common.extents import sizes_for
from mlir_sched.transform_scripts.common.thread_distribution import (
    DIMENSIONS,
    distributed_loops,
    draw_threads,
    workgroup_size,
)
from mlir_sched.transform_scripts.module import Sketch, Stage, TransformModule
from mlir_sched.transform_scripts.schedule import Schedule, TiledOp, product
from mlir_sched.transform_scripts.vulkan.contraction import MAX_UNROLLED_VECTORS


class LoweringConfig(TransformModule):
    """Draws workgroup, thread and reduction tiles for IREE's BaseVectorize pipeline."""

    name: ClassVar[str] = "lowering_config"
    stage: ClassVar[Stage] = Stage.LOWER
    backends: ClassVar[tuple[str, ...]] = ("vulkan-spirv",)

    def extend(self, sketch: Sketch, op: LinalgOp, dispatch: Dispatch, target: Target) -> Iterable[Sketch]:
        """Add one program for a contraction with its fill and epilogues, or for a single element-wise op."""
        del target
        alone = op.kind is OpKind.ELEMENTWISE and len(dispatch.ops) == 1 and not dispatch.other_ops
        if sketch.steps or not (alone or match(op, dispatch)):
            return (sketch,)
        if not 1 <= len(distributed_loops(op)) <= len(DIMENSIONS):
            return (sketch,)
        step = self.step(lambda s: configure(s, op))
        return (sketch, sketch.extended(self.name, step, claimed=tuple(o.index for o in dispatch.ops), complete=True))


def configure(s: Schedule, op: LinalgOp) -> None:
    """Annotate the op and choose the pipeline for the function."""
    nest = s.ops[op.index]
    workgroup, thread = draw_threads(s, nest, distributed_loops(op))
    levels = [("workgroup", sizes_for(op, workgroup)), ("thread", sizes_for(op, thread))]
    if op.reduction_dims:
        levels.append(("loop", sizes_for(op, _sample_reduction(s, op, thread))))
    lists = ", ".join(f"[{', '.join(str(int(size)) for size in sizes)}]" for _, sizes in levels)
    config = f"#iree_codegen.lowering_config<tile_sizes = [{lists}]>"
    s.emit.annotate(nest.handle, "lowering_config", config)
    tiled = TiledOp(None, op, op.extents)
    for kind, sizes in levels:
        tiled = tiled.tiled(None, kind, sizes)
    s.finish(tiled)
    size = ", ".join(map(str, workgroup_size(tiled)))
    pipeline = "pipeline = #iree_gpu.spirv_pipeline<BaseVectorize>"
    s.emit.annotate(None, "translation_info", f"#iree_codegen.translation_info<{pipeline} workgroup_size = [{size}]>")


def _sample_reduction(s: Schedule, op: LinalgOp, thread: dict[int, int]) -> dict[int, int]:
    *outer, innermost = op.reduction_dims
    (step,) = s.sample_perfect_tile("reduction_step", op.extents[innermost], 1, max_innermost=MAX_REDUCTION_STEP)
    unrolled = product([*thread.values(), step]) // s.target.vector_elements(4)
    s.require(unrolled <= MAX_UNROLLED_VECTORS, f"{unrolled} unrolled vectors are more than {MAX_UNROLLED_VECTORS}")
    return {**dict.fromkeys(outer, 1), innermost: step}
