"""Transform modules for IREE's rocm backend: what all GPUs share, and what those share whose code LLVM generates."""

from mlir_sched.transform_scripts.gpu import shared_modules
from mlir_sched.transform_scripts.llvm_gpu import Lowering, LoweringConfig, StridedReduction, SubgroupReduction
from mlir_sched.transform_scripts.module import TransformModule

__all__ = ["default_modules"]


def default_modules() -> list[TransformModule]:
    """Return the target's modules in the order in which they are asked."""
    return [LoweringConfig(), SubgroupReduction(), StridedReduction(), *shared_modules(), Lowering()]
