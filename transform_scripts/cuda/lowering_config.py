"""IREE's own CUDA pipeline with other tile sizes: the script sets a ``lowering_config`` and IREE does the rest.

Source: IREE 3.13, TileAndFuse with ``#iree_gpu.lowering_config`` (LLVMGPU/KernelConfig.cpp): ``workgroup``, ``thread``
and ``reduction`` count iterations; with an ``mma_kind``, ``subgroup`` and ``reduction`` count tiles of an instruction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.common.contraction import MAX_REDUCTION_STEP, by_one
from mlir_sched.transform_scripts.cuda.tensor_core import (
    MAX_STEP,
    ROWS,
    check_warp,
    reduced_at_once,
    sample_warps,
    takes_tensor_cores,
    warp_threads,
)
from mlir_sched.transform_scripts.gpu.contraction import MAX_THREAD_VECTORS
from mlir_sched.transform_scripts.gpu.shared_memory import fits, sample_step
from mlir_sched.transform_scripts.gpu.thread_distribution import DIMENSIONS, distributed_loops, draw_threads
from mlir_sched.transform_scripts.module import DelegatingModule
from mlir_sched.transform_scripts.nest import Sharing, nest_of, shared_tiles, size_list
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction, Loop, loop_of

INSTRUCTION_COLUMNS = 8
"""Columns of one ``mma.sync``, which ``subgroup`` counts."""
KINDS = {
    ("f16", "f32"): "NV_MMA_SYNC_F32_16x8x16_F16",
    ("f16", "f16"): "NV_MMA_SYNC_F16_16x8x16_F16",
    ("bf16", "f32"): "NV_MMA_SYNC_F32_16x8x16_BF16",
}
"""IREE's name of the instruction, by element types of inputs and result."""
PROMOTE = "promote_operands = [0, 1]"


class LoweringConfig(DelegatingModule):
    """A module that draws tiles for IREE's TileAndFuse pipeline: of warps on tensor cores, else of threads."""

    name: ClassVar[str] = "lowering_config"
    backends: ClassVar[tuple[str, ...]] = ("cuda",)

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Contraction | None:
        """Match a contraction with its fill and epilogues, of at most three parallel loops."""
        del target
        mm = matchers.contraction(op, dispatch)
        return mm if mm is not None and 1 <= len(distributed_loops(op)) <= len(DIMENSIONS) else None

    def schedule(self, s: Schedule, found: Contraction) -> None:
        """Annotate the contraction and choose the pipeline for the function."""
        kind = KINDS.get((found.op.inputs[0].tensor.element_type, found.op.outputs[0].tensor.element_type))
        if kind and takes_tensor_cores(found, ("f16", "bf16")):
            _configure_warps(s, found, kind)
        else:
            _configure_threads(s, found)


def _configure_threads(s: Schedule, mm: Contraction) -> None:
    loops = tuple(loop_of(mm.op, loop.position(mm.op)) for loop in distributed_loops(mm.op))
    workgroup, thread = draw_threads(s, mm.op, loops)
    step = s.sample_tile("reduction_step", mm.reduction, most=MAX_REDUCTION_STEP)
    s.require_unrolled(math.prod([*thread.values(), step]) // s.target.vector_elements(4), MAX_THREAD_VECTORS)
    reduction = {**by_one(mm.outer_reductions), mm.reduction: step}
    nest = nest_of(mm.op, [("workgroup", workgroup), ("loop", reduction)])
    room = fits(s, Sharing(shared_tiles(mm.op, nest.tile), 1))
    promote = room and s.sample_yes("promote", yes=1.0, no=1.0)
    lists = {"workgroup": workgroup, "thread": thread, "reduction": reduction}
    levels = [("workgroup", workgroup), ("loop", reduction), ("thread", thread)]
    _delegate(s, mm, lists, [PROMOTE] if promote else [], int(s.notes["threads"]), levels)


def _configure_warps(s: Schedule, mm: Contraction, kind: str) -> None:
    assert mm.rows is not None
    workgroup, warp = sample_warps(s, mm)
    threads = warp_threads(s, workgroup, warp)
    unit = reduced_at_once(mm)
    step = sample_step(s, mm, workgroup, threads, most=MAX_STEP, unit=unit)
    check_warp(s, mm, warp, step)
    lists = {
        "workgroup": workgroup,
        "subgroup": {mm.rows: warp[mm.rows] // ROWS, mm.columns: warp[mm.columns] // INSTRUCTION_COLUMNS},
        "reduction": {mm.reduction: step // unit},
    }
    levels = [("workgroup", workgroup), ("loop", {mm.reduction: step}), ("subgroup", warp)]
    _delegate(s, mm, lists, [f"mma_kind = #iree_gpu.mma_layout<{kind}>", PROMOTE], threads, levels)


def _delegate(
    s: Schedule,
    mm: Contraction,
    lists: Mapping[str, Mapping[Loop, int]],
    options: list[str],
    threads: int,
    levels: list[tuple[str, dict[Loop, int]]],
) -> None:
    assert s.target.gpu is not None
    entries = ", ".join([*(f"{key} = {size_list(mm.op, sizes)}" for key, sizes in lists.items()), *options])
    size = f"workgroup_size = [{threads}, 1, 1] subgroup_size = {s.target.gpu.subgroup_size}"
    pipeline = f"#iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<TileAndFuse> {size}>"
    s.delegate(mm.op, f"#iree_gpu.lowering_config<{{{entries}}}>", pipeline, levels)
