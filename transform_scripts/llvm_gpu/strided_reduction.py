"""Reductions in strides across threads: IREE's VectorDistribute pipeline for sums of columns and vector times matrix.

Results are adjacent in what is read. Some lanes of a subgroup have adjacent results; the other lanes, and as many
subgroups, share the reduction of each result, and their sums are combined at the end. One thread per result, as in
``linear_reduction``, is not enough to keep a GPU busy where a matrix has few columns.

Source: IREE 3.13, ``#iree_gpu.lowering_config`` (LLVMGPU/ReductionConfigUtils.cpp), whose own configuration gives all
lanes to the reduction: each then reads four bytes of a sector of memory.
"""

from dataclasses import dataclass
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.targets.target import GpuLimits, Target
from mlir_sched.transform_scripts.common import OnThreads
from mlir_sched.transform_scripts.extents import powers_of_two
from mlir_sched.transform_scripts.llvm_gpu.lowering import translation_info
from mlir_sched.transform_scripts.module import DelegatingModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Loop, Loops, loop_of
from mlir_sched.transform_scripts.tracking.nest import size_list

MAX_VECTOR_BYTES = 16
"""Widest load of a thread."""
MAX_REPEATS = 8
"""Most rows that a thread reads in one step."""


@dataclass(frozen=True)
class Columns:
    """A reduction in strides.

    Attributes:
        op: The reduction.
        columns: The loop over results that are adjacent in memory.
        along: The loop that is reduced.
        others: The other loops, each of whose iterations has data of its own.
    """

    op: LinalgOp
    columns: Loop
    along: Loop
    others: Loops


class StridedReduction(OnThreads, DelegatingModule):
    """A module that draws how lanes and subgroups share columns and rows for IREE's VectorDistribute pipeline."""

    name: ClassVar[str] = "strided_reduction"
    backends: ClassVar[tuple[str, ...]] = ("cuda", "rocm")

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Columns | None:
        """Match one reduction, or product with a vector, of columns that are read once, with its fill and epilogues."""
        assert target.gpu is not None
        known = all(each is op or each.kind in (OpKind.FILL, OpKind.ELEMENTWISE) for each in dispatch.ops)
        if not known or dispatch.other_ops or len(dispatch.results) != 1:
            return None
        found = _columns_of(op)
        return found if found is not None and _lane_counts(found, target.gpu) else None

    def schedule(self, s: Schedule, found: Columns) -> None:
        """Draw lanes, vectors and steps, and choose the pipeline for the function.

        One subgroup combines the sums of all subgroups, one by each of its lanes along the reduction: there are as many
        subgroups as such lanes. With more of them, IREE's code leaves out sums.
        """
        assert s.target.gpu is not None
        gpu, op, columns, along = s.target.gpu, found.op, found.columns, found.along
        lanes = int(s.sample_number("lanes", _lane_counts(found, gpu)))
        sharing = gpu.subgroup_size // lanes
        widest = max(1, MAX_VECTOR_BYTES // op.largest_input.tensor.element_bytes)
        vectors = [size for size in powers_of_two(widest) if columns.extent % (lanes * size) == 0]
        vector = int(s.sample_number("vector", vectors))
        rows = along.extent // sharing**2
        repeats = int(s.sample_number("repeats", [n for n in powers_of_two(MAX_REPEATS) if rows % n == 0]))
        threads, step = gpu.subgroup_size * sharing, sharing**2 * repeats
        s.notes["threads"] = threads
        single = dict.fromkeys(found.others, 1)
        workgroup = {**single, columns: lanes * vector}
        order = ", ".join(map(str, range(len(op.extents))))
        entries = {
            "lane_basis": f"[{size_list(op, {**single, columns: lanes, along: sharing})}, [{order}]]",
            "partial_reduction": size_list(op, {along: step}),
            "subgroup_basis": f"[{size_list(op, {**single, columns: 1, along: sharing})}, [{order}]]",
            "thread": size_list(op, {columns: vector, along: 1}),
            "workgroup": size_list(op, workgroup),
        }
        config = ", ".join(f"{name} = {value}" for name, value in entries.items())
        pipeline = translation_info("VectorDistribute", threads, gpu)
        levels = [("workgroup", workgroup), ("loop", {along: step}), ("thread", {columns: vector, along: repeats})]
        s.delegate(op, f"#iree_gpu.lowering_config<{{{config}}}>", pipeline, levels)


def _columns_of(op: LinalgOp) -> Columns | None:
    """Return the structure of an op; None where it does not reduce columns, or reads elements of them several times."""
    if op.kind not in (OpKind.REDUCTION, OpKind.CONTRACTION) or not op.reduces or len(op.reduction_dims) != 1:
        return None
    matrix, columns = op.largest_input, op.contiguous_dim
    longer = {dim for dim, extent in enumerate(op.extents) if extent > 1}
    if not matrix.is_projected_permutation or not longer <= {*matrix.dims} or matrix.loops[-1] != columns:
        return None
    if columns in op.reduction_dims or any(operand.producer is not None for operand in op.inputs):
        return None
    (along,) = op.reduction_dims
    others = tuple(loop_of(op, dim) for dim in op.parallel_dims if dim != columns)
    return Columns(op, loop_of(op, matrix.loops[-1]), loop_of(op, along), others)


def _lane_counts(found: Columns, gpu: GpuLimits) -> list[int]:
    """Return the numbers of lanes along the columns: rows fill the other lanes, and as many subgroups, evenly."""
    counts = powers_of_two(gpu.subgroup_size // 2)
    return [
        lanes
        for lanes in counts
        if found.columns.extent % lanes == 0
        and found.along.extent % (gpu.subgroup_size // lanes) ** 2 == 0
        and gpu.subgroup_size**2 // lanes <= min(gpu.workgroup_threads, gpu.workgroup_size[0])
    ]
