"""Contractions on NVIDIA's tensor cores: warps multiply tiles in shared memory with ``mma.sync`` (Use-Tensor-Core).

Beside it, :mod:`.lowering_config` reaches the tensor cores without scripts.

Source: IREE ``LLVMGPU/Passes.cpp`` (the former matmul pipeline for tensor cores with mma.sync), IREE 3.13.
"""

from typing import Any, ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import MatrixUnit, Target
from mlir_sched.transform_scripts import matchers, patterns
from mlir_sched.transform_scripts.common import tile_reduction
from mlir_sched.transform_scripts.cuda.lowering import copy_ahead, pipeline, require_register_file, sample_depth
from mlir_sched.transform_scripts.gpu.lowering import hoist_accumulators, map_sharing_threads
from mlir_sched.transform_scripts.gpu.matrix_units import MatrixProduct, matrix_product, sample_matrix_tiles
from mlir_sched.transform_scripts.gpu.shared_memory import distribute_over_workgroups
from mlir_sched.transform_scripts.llvm_gpu.lowering import pad_rows, sample_padding
from mlir_sched.transform_scripts.module import MatchingModule
from mlir_sched.transform_scripts.schedule import Schedule

UNITS = (MatrixUnit(16, 16, 16, "f16", "f32"), MatrixUnit(16, 16, 16, "f16", "f16"))
"""What two ``mma.sync`` side by side compute. Source: PTX ISA, shapes m16n8k16 (f16) and m16n8k8 (tf32).

IREE 3.13 does not load 8 columns of a step of 64 (``ldmatrix`` of 8 matrices)."""
TF32 = MatrixUnit(16, 16, 8, "f32", "f32")
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
        self._units = (*UNITS, TF32) if tf32 else UNITS

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> MatrixProduct | None:
        """Match a fill and a product of two matrices whose extents are whole tiles of the tensor cores."""
        del target
        mm = matchers.contraction(op, dispatch)
        if mm is None or mm.epilogues or mm.others or mm.outer_reductions:
            return None
        return matrix_product(mm, self._units)

    def left_open(self, found: MatrixProduct, dispatch: Dispatch) -> dict[str, Any]:
        """Leave nothing open."""
        del found, dispatch
        return {"complete": True}

    def schedule(self, s: Schedule, found: MatrixProduct) -> None:
        """Copy a step of the reduction, and multiply it warp by warp.

        After: ``forall workgroups: for k step kr: { copies; forall warps: mma.sync }``.
        """
        mm, tiles = found.mm, sample_matrix_tiles(s, found)
        distribute_over_workgroups(s, mm, tiles.workgroup)
        tile_reduction(s, mm, tiles.step)
        s.share(mm.op)
        for op in mm.ops:
            s.distribute(op, tiles.subgroup, WARPS, over="subgroup")
        s.vectorize(*mm.ops, then=CONTRACT)
        s.forget_loops()
        _lower(s, tiles.threads)


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
