"""Transform modules for GPUs whose code LLVM generates: what CUDA and ROCm share (IREE's folder ``LLVMGPU``)."""

from mlir_sched.transform_scripts.llvm_gpu.lowering import Lowering
from mlir_sched.transform_scripts.llvm_gpu.lowering_config import LoweringConfig
from mlir_sched.transform_scripts.llvm_gpu.strided_reduction import StridedReduction
from mlir_sched.transform_scripts.llvm_gpu.subgroup_reduction import SubgroupReduction

__all__ = ["Lowering", "LoweringConfig", "StridedReduction", "SubgroupReduction"]
