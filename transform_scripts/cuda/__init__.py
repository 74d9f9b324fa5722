"""Transform modules for IREE's cuda backend."""

from mlir_sched.transform_scripts.cuda.lowering import Lowering
from mlir_sched.transform_scripts.cuda.lowering_config import LoweringConfig
from mlir_sched.transform_scripts.cuda.tensor_core import TensorCores
from mlir_sched.transform_scripts.gpu import shared_modules
from mlir_sched.transform_scripts.llvm_gpu import StridedReduction, SubgroupReduction
from mlir_sched.transform_scripts.module import TransformModule

__all__ = ["Lowering", "LoweringConfig", "StridedReduction", "SubgroupReduction", "TensorCores", "default_modules"]


def default_modules() -> list[TransformModule]:
    """Return the target's modules in the order in which they are asked."""
    return [LoweringConfig(), SubgroupReduction(), StridedReduction(), TensorCores(), *shared_modules(), Lowering()]
