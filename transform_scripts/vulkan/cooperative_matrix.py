"""Products on cooperative matrices: IREE's pipeline CooperativeMatrixVectorize with other tile sizes.

Source: IREE 3.13, ``tile_sizes = [[workgroup], [subgroup], [reduction], [cooperative matrix]]``
(``setCooperativeMatrixConfig`` in SPIRV/KernelConfig.cpp, addSPIRVCooperativeMatrixVectorizePassPipeline in
SPIRV/Passes.cpp).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.common.contraction import by_one
from mlir_sched.transform_scripts.gpu.matrix_units import (
    MAX_STEP,
    MatrixProduct,
    check_subgroup,
    matrix_product,
    sample_subgroups,
    subgroup_threads,
)
from mlir_sched.transform_scripts.gpu.shared_memory import sample_step
from mlir_sched.transform_scripts.module import DelegatingModule
from mlir_sched.transform_scripts.nest import Sharing, numbers_of, shared_tiles, size_list
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction, Loop
from mlir_sched.transform_scripts.vulkan.promoted_config import PADDING_BYTES

MAX_DEPTH = 2
"""Most steps of the reduction that are copied ahead."""


class CooperativeMatrices(DelegatingModule):
    """A module that draws tiles of workgroups and subgroups for products on cooperative matrices."""

    name: ClassVar[str] = "cooperative_matrix"
    backends: ClassVar[tuple[str, ...]] = ("vulkan-spirv",)

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> MatrixProduct | None:
        """Match a contraction with one reduction that is a product of whole cooperative matrices."""
        mm = matchers.contraction(op, dispatch)
        if mm is None or mm.outer_reductions or target.gpu is None:
            return None
        return matrix_product(mm, sorted(target.gpu.cooperative_matrices))

    def schedule(self, s: Schedule, found: MatrixProduct) -> None:
        """Annotate the contraction and choose the pipeline for the function."""
        assert s.target.gpu is not None
        mm, unit, lanes = found.mm, found.unit, s.target.gpu.subgroup_size
        workgroup, subgroup = sample_subgroups(s, found)
        threads = subgroup_threads(s, workgroup, subgroup)
        step = sample_step(s, mm, workgroup, threads, most=MAX_STEP, unit=unit.reduction)
        check_subgroup(s, found, subgroup, step)
        depth, stage = _sample_pipeline(s, mm, workgroup, step)
        reduction, along_x = {mm.reduction: step}, workgroup[mm.columns] // subgroup[mm.columns] * lanes
        matrix = {found.rows: unit.rows, mm.columns: unit.columns, mm.reduction: unit.reduction}
        lists = (workgroup, subgroup, reduction, {**by_one(workgroup), **matrix})
        config = f"tile_sizes = [{', '.join(size_list(mm.op, sizes) for sizes in lists)}]"
        size = f"workgroup_size = [{along_x}, {threads // along_x}, 1] subgroup_size = {lanes}"
        pipeline = f"pipeline = #iree_gpu.spirv_pipeline<CooperativeMatrixVectorize> {size}"
        ahead = f"{{pipeline_depth = {depth} : i64, store_stage = {stage} : i64}}"
        levels = [("workgroup", workgroup), ("loop", reduction), ("subgroup", subgroup)]
        s.delegate(
            mm.op,
            f"#iree_codegen.lowering_config<{config}>",
            f"#iree_codegen.translation_info<{pipeline}, {ahead}>",
            levels,
        )


def _sample_pipeline(s: Schedule, mm: Contraction, workgroup: Mapping[Loop, int], step: int) -> tuple[int, int]:
    """Draw how many steps of the reduction are copied ahead, and whether a step is stored early or late.

    There is a buffer more than steps ahead. With epilogues, IREE keeps a workgroup's results in shared memory, too.
    """
    assert s.target.gpu is not None
    sharing = Sharing(shared_tiles(mm.op, numbers_of(mm.op, {**workgroup, mm.reduction: step})), 1)
    results = math.prod(workgroup.values()) * mm.op.element_bytes if mm.epilogues else 0
    room = s.target.gpu.shared_memory_bytes - results
    drawn = {"0": (0, 0)}
    for depth in range(1, min(MAX_DEPTH + 1, mm.reduction.extent // step)):
        drawn |= {f"{depth}, early": (depth, 0), f"{depth}, late": (depth, 1)}
    fitting = {name: ahead for name, ahead in drawn.items() if sharing.bytes(ahead[0] + 1, PADDING_BYTES) <= room}
    s.require(bool(fitting), f"a step of {step} does not fit shared memory")
    return fitting[s.sample_choice("pipeline", list(fitting))]
