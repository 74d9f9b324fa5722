"""Contractions on NVIDIA's tensor cores: warps multiply tiles in shared memory with ``mma.sync`` (Use-Tensor-Core).

Beside it, :mod:`.lowering_config` reaches the tensor cores without scripts.

Source: IREE ``LLVMGPU/Passes.cpp`` (the former matmul pipeline for tensor cores with mma.sync), IREE 3.13.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers, patterns
from mlir_sched.transform_scripts.common.contraction import by_one, tile_reduction
from mlir_sched.transform_scripts.cuda.lowering import copy_ahead, pipeline, require_register_file, sample_depth
from mlir_sched.transform_scripts.gpu.lowering import hoist_accumulators, map_sharing_threads
from mlir_sched.transform_scripts.gpu.shared_memory import (
    distribute_over_workgroups,
    sample_step,
    shared_loops,
)
from mlir_sched.transform_scripts.llvm_gpu.lowering import pad_rows, sample_padding
from mlir_sched.transform_scripts.module import MatchingModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction, Loop

ROWS, COLUMNS = 16, 16
"""Results of two ``mma.sync`` side by side. Source: PTX ISA, shapes m16n8k16 (f16) and m16n8k8 (tf32).

IREE 3.13 does not load 8 columns of a step of 64 (``ldmatrix`` of 8 matrices)."""
REDUCTION_BYTES = 32
"""Bytes of a row of either input that one ``mma.sync`` reduces."""
MAX_WARP_ROWS, MAX_WARP_COLUMNS = 128, 128
MAX_WORKGROUP = 256
"""Most rows, and most columns, of a workgroup's tile."""
MAX_ACCUMULATORS = 128
"""Most results of one lane: half of its registers."""
MAX_INSTRUCTIONS = 256
"""Most ``mma.sync`` of a warp in one step of the reduction, which are unrolled."""
MAX_STEP = 64
WARPS = ("#gpu.warp<linear_dim_1>", "#gpu.warp<linear_dim_0>")
"""Numbers of warps in a row of threads: fill and product get equal indices of the result, so that no fill is stored."""
CONTRACT = (
    "vector.reduction_to_contract",
    "vector.transfer_permutation_patterns",
    "vector.fold_arith_extension",
    "vector.sink_ops",
)
"""Make the vector contraction that ``mma.sync`` computes; without casts folded in, there are scalar products."""


class TensorCores(MatchingModule):
    """A module that multiplies matrices of f16 on tensor cores; its programs distribute and lower the dispatch, too.

    Args:
        tf32: Whether products of f32 are computed as well, with inputs rounded to tf32 (10 bits of mantissa): numeric
            checks for f32 refuse most of them.
    """

    name: ClassVar[str] = "tensor_core"
    backends: ClassVar[tuple[str, ...]] = ("cuda",)

    def __init__(self, *, tf32: bool = False) -> None:
        self._inputs = ("f16", "f32") if tf32 else ("f16",)

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Contraction | None:
        """Match a fill and a product of two matrices whose extents are whole tiles of the tensor cores."""
        del target
        mm = matchers.contraction(op, dispatch)
        if mm is None or mm.epilogues or mm.others or mm.outer_reductions:
            return None
        return mm if takes_tensor_cores(mm, self._inputs) else None

    def left_open(self, found: Contraction, dispatch: Dispatch) -> dict[str, Any]:
        """Leave nothing open."""
        del found, dispatch
        return {"complete": True}

    def schedule(self, s: Schedule, found: Contraction) -> None:
        """Copy a step of the reduction, and multiply it warp by warp.

        After: ``forall workgroups: for k step kr: { copies; forall warps: mma.sync }``.
        """
        workgroup, warp = sample_warps(s, found)
        threads = warp_threads(s, workgroup, warp)
        step = sample_step(s, found, workgroup, threads, most=MAX_STEP, unit=reduced_at_once(found))
        check_warp(s, found, warp, step)
        distribute_over_workgroups(s, found, workgroup)
        tile_reduction(s, found, step)
        s.share(found.op)
        for op in found.ops:
            s.distribute(op, warp, WARPS, over="subgroup")
        s.vectorize(*found.ops, then=CONTRACT)
        s.forget_loops()
        _lower(s, threads)


def takes_tensor_cores(mm: Contraction, inputs: Sequence[str]) -> bool:
    """Say whether a contraction multiplies matrices of some element types in whole tiles of tensor cores."""
    if mm.rows is None or not shared_loops(mm):
        return False
    kinds = {operand.tensor.element_type for operand in mm.op.inputs}
    if len(kinds) != 1 or not kinds <= set(inputs) or mm.op.outputs[0].tensor.element_type not in ("f16", "f32"):
        return False
    return not any((mm.rows.extent % ROWS, mm.columns.extent % COLUMNS, mm.reduction.extent % reduced_at_once(mm)))


def reduced_at_once(mm: Contraction) -> int:
    """Return the iterations of the reduction that one ``mma.sync`` computes."""
    return REDUCTION_BYTES // mm.op.inputs[0].tensor.element_bytes


def sample_warps(s: Schedule, mm: Contraction) -> tuple[dict[Loop, int], dict[Loop, int]]:
    """Draw the tiles of a workgroup and of a warp, by loop, outermost first; of a batch, they hold one matrix."""
    assert mm.rows is not None
    bounds = {mm.rows: (MAX_WARP_ROWS, ROWS), mm.columns: (MAX_WARP_COLUMNS, COLUMNS)}
    loops = shared_loops(mm)
    workgroup, warp = by_one(loops), by_one(loops)
    for loop in (loop for loop in loops if loop in bounds):
        most, unit = bounds[loop]
        workgroup[loop], warp[loop] = s.sample_tiles(
            f"tile_{loop.name}", loop, 2, most=most, unit=unit, most_outermost=MAX_WORKGROUP
        )
    return workgroup, warp


def warp_threads(s: Schedule, workgroup: dict[Loop, int], warp: dict[Loop, int]) -> int:
    """Return the threads of a workgroup, and refuse more than a device runs."""
    assert s.target.gpu is not None
    warps, most = math.prod(workgroup[loop] // warp[loop] for loop in workgroup), s.target.gpu.workgroup_threads
    threads = warps * s.target.gpu.subgroup_size
    s.require(threads <= most, f"{threads} threads per workgroup > {most}")
    s.notes["threads"] = threads
    return threads


def check_warp(s: Schedule, mm: Contraction, warp: dict[Loop, int], step: int) -> None:
    """Refuse tiles of a warp that take too many registers or instructions, and note both."""
    assert s.target.gpu is not None
    assert mm.rows is not None
    rows, columns = warp[mm.rows], warp[mm.columns]
    held = rows * columns // s.target.gpu.subgroup_size
    s.require(held <= MAX_ACCUMULATORS, f"{held} results per lane are more than {MAX_ACCUMULATORS}")
    count = 2 * (rows // ROWS) * (columns // COLUMNS) * (step // reduced_at_once(mm))
    s.require(count <= MAX_INSTRUCTIONS, f"{count} mma.sync in a step are more than {MAX_INSTRUCTIONS}")
    s.notes["accumulator_registers"], s.notes["unrolled_vectors"] = held, count


def _lower(s: Schedule, threads: int) -> None:
    """Draw how copies are made, and emit everything from vectors on tensors to ``mma.sync``."""
    assert s.sharing is not None
    require_register_file(s)
    padding = sample_padding(s, s.sharing)
    depth = sample_depth(s, s.sharing, padding)
    s.apply_patterns(*patterns.CLEAN_UP, cse=True)
    map_sharing_threads(s, (threads, 1, 1))
    copy_ahead(s, depth)
    s.apply_patterns("iree.prepare_vector_to_mma")
    s.apply_patterns("iree.unroll_vectors_gpu_mma_sync")
    for _ in range(2):  # the second one finds what the first one moved
        hoist_accumulators(s)
    s.raw("transform.memref.erase_dead_alloc_and_stores")
    s.apply_patterns("canonicalization", cse=True)
    s.raw("transform.iree.vector.vector_to_mma_conversion", attributes={"use_mma_sync": "unit"})
    pipeline(s, depth)
    pad_rows(s, padding)
