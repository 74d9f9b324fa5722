"""Products on cooperative matrices: IREE's pipeline CooperativeMatrixVectorize with other tile sizes.

Source: IREE 3.13, ``tile_sizes = [[workgroup], [subgroup], [reduction], [cooperative matrix]]``
(``setCooperativeMatrixConfig`` in SPIRV/KernelConfig.cpp, addSPIRVCooperativeMatrixVectorizePassPipeline in
SPIRV/Passes.cpp).
"""

import math
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.common import by_one
from mlir_sched.transform_scripts.gpu.matrix_units import (
    MatrixProduct,
    MatrixTiles,
    matrix_product,
    sample_matrix_tiles,
)
from mlir_sched.transform_scripts.module import DelegatingModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction
from mlir_sched.transform_scripts.tracking.nest import Sharing, numbers_of, shared_tiles, size_list
from mlir_sched.transform_scripts.vulkan.steps_ahead import MAX_DEPTH, PADDING_BYTES, StepsAhead, sample_steps_ahead


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
        tiles = sample_matrix_tiles(s, found)
        ahead = _sample_steps_ahead(s, mm, tiles)
        workgroup, subgroup, reduction = tiles.workgroup, tiles.subgroup, {mm.reduction: tiles.step}
        matrix = {found.rows: unit.rows, mm.columns: unit.columns, mm.reduction: unit.reduction}
        lists = (workgroup, subgroup, reduction, {**by_one(workgroup), **matrix})
        config = f"tile_sizes = [{', '.join(size_list(mm.op, sizes) for sizes in lists)}]"
        along_x = workgroup[mm.columns] // subgroup[mm.columns] * lanes
        size = f"workgroup_size = [{along_x}, {tiles.threads // along_x}, 1] subgroup_size = {lanes}"
        pipeline = f"pipeline = #iree_gpu.spirv_pipeline<CooperativeMatrixVectorize> {size}"
        levels = [("workgroup", workgroup), ("loop", reduction), ("subgroup", subgroup)]
        s.delegate(
            mm.op,
            f"#iree_codegen.lowering_config<{config}>",
            f"#iree_codegen.translation_info<{pipeline}, {ahead.attributes}>",
            levels,
        )


def _sample_steps_ahead(s: Schedule, mm: Contraction, tiles: MatrixTiles) -> StepsAhead:
    """Draw how many steps of the reduction are copied ahead, and when a step is stored.

    There is a buffer more than steps ahead. With epilogues, IREE keeps a workgroup's results in shared memory, too.
    """
    assert s.target.gpu is not None
    step = numbers_of(mm.op, {**tiles.workgroup, mm.reduction: tiles.step})
    sharing = Sharing(shared_tiles(mm.op, step), 1)
    results = math.prod(tiles.workgroup.values()) * mm.op.element_bytes if mm.epilogues else 0
    room = s.target.gpu.shared_memory_bytes - results
    depths = [depth for depth in range(MAX_DEPTH + 1) if not depth or depth < mm.reduction.extent // tiles.step]
    return sample_steps_ahead(
        s,
        depths,
        lambda ahead: sharing.bytes(ahead.depth + 1, PADDING_BYTES) <= room,
        f"a step of {tiles.step} does not fit shared memory",
    )
