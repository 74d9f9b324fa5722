"""IREE's pipeline TileAndFuse on tensor cores: the script sets a ``lowering_config`` and IREE does the rest.

Source: IREE 3.13, ``#iree_gpu.lowering_config`` (LLVMGPU/KernelConfig.cpp): with an ``mma_kind``, ``subgroup`` and
``reduction`` count tiles of an instruction.
"""

from __future__ import annotations

from typing import ClassVar

from mlir_sched.transform_scripts import llvm_gpu
from mlir_sched.transform_scripts.common.contraction import by_one
from mlir_sched.transform_scripts.cuda.tensor_core import (
    MAX_STEP,
    ROWS,
    check_warp,
    reduced_at_once,
    sample_warps,
    takes_tensor_cores,
    warp_threads,
)
from mlir_sched.transform_scripts.gpu.shared_memory import sample_step
from mlir_sched.transform_scripts.llvm_gpu.lowering_config import PROMOTE, tile_and_fuse
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction

INSTRUCTION_COLUMNS = 8
"""Columns of one ``mma.sync``, which ``subgroup`` counts."""
KINDS = {
    ("f16", "f32"): "NV_MMA_SYNC_F32_16x8x16_F16",
    ("f16", "f16"): "NV_MMA_SYNC_F16_16x8x16_F16",
    ("bf16", "f32"): "NV_MMA_SYNC_F32_16x8x16_BF16",
}
"""IREE's name of the instruction, by element types of inputs and result."""


class LoweringConfig(llvm_gpu.LoweringConfig):
    """A module that draws tiles for IREE's TileAndFuse pipeline: of warps on tensor cores, else of threads."""

    backends: ClassVar[tuple[str, ...]] = ("cuda",)

    def schedule(self, s: Schedule, found: Contraction) -> None:
        """Annotate the contraction and choose the pipeline for the function."""
        kind = KINDS.get((found.op.inputs[0].tensor.element_type, found.op.outputs[0].tensor.element_type))
        if kind and takes_tensor_cores(found, ("f16", "bf16")):
            _configure_warps(s, found, kind)
        else:
            super().schedule(s, found)


def _configure_warps(s: Schedule, mm: Contraction, kind: str) -> None:
    assert mm.rows is not None
    workgroup, warp = sample_warps(s, mm)
    threads = warp_threads(s, workgroup, warp)
    unit = reduced_at_once(mm)
    step = sample_step(s, mm, workgroup, threads, most=MAX_STEP, unit=unit)
    check_warp(s, mm, warp, step)
    outer = by_one(mm.outer_reductions)
    lists = {
        "workgroup": workgroup,
        "subgroup": {mm.rows: warp[mm.rows] // ROWS, mm.columns: warp[mm.columns] // INSTRUCTION_COLUMNS},
        "reduction": {**outer, mm.reduction: step // unit},
    }
    levels = [("workgroup", workgroup), ("loop", {**outer, mm.reduction: step}), ("subgroup", warp)]
    tile_and_fuse(s, mm, lists, [f"mma_kind = #iree_gpu.mma_layout<{kind}>", PROMOTE], threads, levels)
