"""Reductions across threads: IREE's VectorDistribute pipeline with other workgroups, vectors and steps.

Source: IREE 3.13, ``#iree_gpu.lowering_config`` (LLVMGPU/ReductionConfigUtils.cpp).
"""

from typing import ClassVar

from mlir_sched.payload import LinalgOp
from mlir_sched.transform_scripts import gpu
from mlir_sched.transform_scripts.gpu.subgroup_reduction import SharedRows
from mlir_sched.transform_scripts.llvm_gpu.lowering import translation_info
from mlir_sched.transform_scripts.schedule import Schedule


class SubgroupReduction(gpu.SubgroupReduction):
    """A module that draws threads, vectors and steps for IREE's VectorDistribute pipeline."""

    backends: ClassVar[tuple[str, ...]] = ("cuda", "rocm")
    vectors: ClassVar[tuple[int, ...]] = (1, 2, 4, 8)
    max_repeats: ClassVar[int] = 8

    def configs(self, s: Schedule, rows: SharedRows) -> list[tuple[LinalgOp, str]]:
        """Return the configuration of every reduction, and of an element-wise root."""
        assert s.target.gpu is not None
        lanes = s.target.gpu.subgroup_size
        return [(op, _config(op, rows, lanes)) for op in rows.configured]

    def pipeline(self, s: Schedule, rows: SharedRows) -> str:
        """Return the pipeline with its workgroup and subgroup size."""
        assert s.target.gpu is not None
        return translation_info("VectorDistribute", rows.threads, s.target.gpu)


def _config(op: LinalgOp, rows: SharedRows, lanes: int) -> str:
    outer = len(op.extents) - 1
    order = ", ".join(map(str, range(outer + 1)))

    def last(others: int, number: int) -> str:
        return f"[{', '.join([str(others)] * outer + [str(number)])}]"

    entries = [
        f"lane_basis = [{last(1, lanes)}, [{order}]]",
        f"{'partial_reduction' if op.reduces else 'serial'} = {last(0, rows.step)}",
        f"subgroup_basis = [{last(1, rows.threads // lanes)}, [{order}]]",
        f"thread = {last(0, rows.vector)}",
    ]
    if op is rows.last:
        entries.append(f"workgroup = {last(1, 0)}")
    return f"#iree_gpu.lowering_config<{{{', '.join(entries)}}}>"
