"""Reductions across threads on Vulkan: IREE's SubgroupReduce pipeline with other workgroups and steps.

Source: IREE 3.13, ``tile_sizes = [[workgroup], [reduction]]`` (SPIRV/KernelConfig.cpp, setReductionConfig).
"""

from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import gpu
from mlir_sched.transform_scripts.gpu.subgroup_reduction import SharedRows
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Reduction


class SubgroupReduction(gpu.SubgroupReduction):
    """A module that draws threads and steps for IREE's SubgroupReduce pipeline.

    A thread reads one vector of SPIR-V in a step; IREE 3.13 makes no SPIR-V of more.
    """

    backends: ClassVar[tuple[str, ...]] = ("vulkan-spirv",)
    vectors: ClassVar[tuple[int, ...]] = (1, 2, 4)
    max_repeats: ClassVar[int] = 1

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Reduction | None:
        """Match reductions of contiguous rows with elements of 4 bytes."""
        found = super().match(op, dispatch, target)
        return found if found and all(other.element_bytes == 4 for other in found.ops) else None

    def configs(self, s: Schedule, rows: SharedRows) -> list[tuple[LinalgOp, str]]:
        """Return the tile sizes of all ops but those between reductions; fills have those of the reductions."""
        del s
        steps = f"[{', '.join(['0'] * len(rows.found.parallel) + [str(rows.step)])}]"
        single = f"[{', '.join(['1'] * len(rows.found.parallel))}]"
        fills = [op for op in rows.found.ops if op.kind is OpKind.FILL]
        return [
            (op, f"#iree_codegen.lowering_config<tile_sizes = [{single if op is rows.last else '[]'}, {steps}]>")
            for op in (*fills, *rows.configured)
        ]

    def pipeline(self, s: Schedule, rows: SharedRows) -> str:
        """Return the pipeline with its workgroup size."""
        del s
        pipeline = f"pipeline = #iree_gpu.spirv_pipeline<SubgroupReduce> workgroup_size = [{rows.threads}, 1, 1]"
        return f"#iree_codegen.translation_info<{pipeline}>"
