"""IREE's pipeline TileAndFuse on tensor cores: the script sets a ``lowering_config`` and IREE does the rest.

Source: IREE 3.13, ``#iree_gpu.lowering_config`` (LLVMGPU/KernelConfig.cpp): with an ``mma_kind``, ``subgroup`` and
``reduction`` count tiles of an instruction.
"""

from typing import ClassVar

from mlir_sched.targets.target import MatrixUnit
from mlir_sched.transform_scripts import llvm_gpu
from mlir_sched.transform_scripts.common import by_one
from mlir_sched.transform_scripts.gpu.matrix_units import MatrixProduct, matrix_product, sample_matrix_tiles
from mlir_sched.transform_scripts.llvm_gpu.lowering_config import PROMOTE, tile_and_fuse
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction

INSTRUCTION_COLUMNS = 8
"""Columns of one ``mma.sync``, which ``subgroup`` counts."""
KINDS = {
    MatrixUnit(16, 16, 16, "f16", "f32"): "NV_MMA_SYNC_F32_16x8x16_F16",
    MatrixUnit(16, 16, 16, "f16", "f16"): "NV_MMA_SYNC_F16_16x8x16_F16",
    MatrixUnit(16, 16, 16, "bf16", "f32"): "NV_MMA_SYNC_F32_16x8x16_BF16",
}
"""IREE's name of the instruction that computes a unit in two parts, side by side."""


class LoweringConfig(llvm_gpu.LoweringConfig):
    """A module that draws tiles for IREE's TileAndFuse pipeline: of warps on tensor cores, else of threads."""

    backends: ClassVar[tuple[str, ...]] = ("cuda",)

    def schedule(self, s: Schedule, found: Contraction) -> None:
        """Annotate the contraction and choose the pipeline for the function."""
        product = matrix_product(found, KINDS)
        if product is None:
            super().schedule(s, found)
        else:
            _configure_warps(s, product)


def _configure_warps(s: Schedule, product: MatrixProduct) -> None:
    mm, unit, tiles = product.mm, product.unit, sample_matrix_tiles(s, product)
    warp, outer = tiles.subgroup, by_one(mm.outer_reductions)
    lists = {
        "workgroup": tiles.workgroup,
        "subgroup": {
            product.rows: warp[product.rows] // unit.rows,
            mm.columns: warp[mm.columns] // INSTRUCTION_COLUMNS,
        },
        "reduction": {**outer, mm.reduction: tiles.step // unit.reduction},
    }
    levels = [("workgroup", tiles.workgroup), ("loop", {**outer, mm.reduction: tiles.step}), ("subgroup", warp)]
    kind = f"mma_kind = #iree_gpu.mma_layout<{KINDS[unit]}>"
    tile_and_fuse(s, mm, lists, [kind, PROMOTE], tiles.threads, levels)
