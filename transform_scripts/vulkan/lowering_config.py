"""IREE's own SPIR-V pipeline with other tile sizes: the script sets a ``lowering_config`` and IREE does the rest.

Source: IREE 3.13, BaseVectorize with ``tile_sizes = [[workgroup], [thread], [reduction]]`` (SPIRV/KernelConfig.cpp).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.common.contraction import MAX_REDUCTION_STEP
from mlir_sched.transform_scripts.common.thread_distribution import (
    DIMENSIONS,
    distributed_loops,
    draw_threads,
    workgroup_size,
)
from mlir_sched.transform_scripts.module import Sketch, Stage, TransformModule
from mlir_sched.transform_scripts.nest import Level
from mlir_sched.transform_scripts.schedule import Schedule, product
from mlir_sched.transform_scripts.structures import Loop, loop_of
from mlir_sched.transform_scripts.vulkan.contraction import MAX_UNROLLED_VECTORS


class LoweringConfig(TransformModule):
    """A module that draws workgroup, thread and reduction tiles for IREE's BaseVectorize pipeline."""

    name: ClassVar[str] = "lowering_config"
    stage: ClassVar[Stage] = Stage.LOWER
    backends: ClassVar[tuple[str, ...]] = ("vulkan-spirv",)

    def extend(self, sketch: Sketch, op: LinalgOp, dispatch: Dispatch, target: Target) -> Iterable[Sketch]:
        """Add one program for a contraction with its fill and epilogues, or for a single element-wise op."""
        del target
        alone = op.kind is OpKind.ELEMENTWISE and len(dispatch.ops) == 1 and not dispatch.other_ops
        if sketch.steps or not (alone or matchers.contraction(op, dispatch)):
            return (sketch,)
        if not 1 <= len(distributed_loops(op)) <= len(DIMENSIONS):
            return (sketch,)
        step = self.step(lambda s: configure(s, op))
        return (sketch, sketch.extended(self.name, step, claimed=tuple(o.index for o in dispatch.ops), complete=True))


def configure(s: Schedule, op: LinalgOp) -> None:
    """Annotate the op and choose the pipeline for the function."""
    workgroup, thread = draw_threads(s, op, distributed_loops(op))
    levels: list[tuple[str, dict[Loop, int]]] = [("workgroup", workgroup), ("thread", thread)]
    if op.reduction_dims:
        levels.append(("loop", _sample_reduction(s, op, thread)))
    lists = ", ".join(f"[{', '.join(str(int(size)) for size in _in_order(op, sizes))}]" for _, sizes in levels)
    config = f"#iree_codegen.lowering_config<tile_sizes = [{lists}]>"
    tiles = [Level(kind, _in_order(op, sizes)) for kind, sizes in levels]
    size = ", ".join(map(str, workgroup_size(op, [_within(op, tile) for tile in tiles])))
    pipeline = "pipeline = #iree_gpu.spirv_pipeline<BaseVectorize>"
    s.delegate(op, config, f"#iree_codegen.translation_info<{pipeline} workgroup_size = [{size}]>", levels)


def _in_order(op: LinalgOp, sizes: Mapping[Loop, int]) -> tuple[int, ...]:
    """Return one size per loop of the op, 0 for loops that stay whole."""
    by_position = {loop.position(op): size for loop, size in sizes.items()}
    return tuple(by_position.get(position, 0) for position in range(len(op.extents)))


def _within(op: LinalgOp, level: Level) -> Level:
    tile = tuple(min(size, extent) if size else extent for size, extent in zip(level.tile, op.extents, strict=True))
    return Level(level.kind, tile)


def _sample_reduction(s: Schedule, op: LinalgOp, thread: Mapping[Loop, int]) -> dict[Loop, int]:
    *outer, innermost = (loop_of(op, position) for position in op.reduction_dims)
    step = s.sample_tile("reduction_step", innermost, most=MAX_REDUCTION_STEP)
    unrolled = product([*thread.values(), step]) // s.target.vector_elements(4)
    s.require(unrolled <= MAX_UNROLLED_VECTORS, f"{unrolled} unrolled vectors are more than {MAX_UNROLLED_VECTORS}")
    return {**dict.fromkeys(outer, 1), innermost: step}
