"""Transform modules for IREE's llvm-cpu backend."""

from mlir_sched.transform_scripts.llvm_cpu.attention import AttentionTiling
from mlir_sched.transform_scripts.llvm_cpu.contraction import ContractionTiling
from mlir_sched.transform_scripts.llvm_cpu.convolution import ConvolutionTiling
from mlir_sched.transform_scripts.llvm_cpu.dot_product import DotProduct
from mlir_sched.transform_scripts.llvm_cpu.elementwise import ElementwiseTiling
from mlir_sched.transform_scripts.llvm_cpu.lowering import Lowering
from mlir_sched.transform_scripts.llvm_cpu.lowering_config import LoweringConfig
from mlir_sched.transform_scripts.llvm_cpu.parallel_distribution import ParallelDistribution
from mlir_sched.transform_scripts.llvm_cpu.reduction import ReductionTiling
from mlir_sched.transform_scripts.llvm_cpu.several_results import SeveralResultsTiling
from mlir_sched.transform_scripts.module import TransformModule

__all__ = [
    "AttentionTiling",
    "ContractionTiling",
    "ConvolutionTiling",
    "DotProduct",
    "ElementwiseTiling",
    "Lowering",
    "LoweringConfig",
    "ParallelDistribution",
    "ReductionTiling",
    "SeveralResultsTiling",
    "default_modules",
]


def default_modules() -> list[TransformModule]:
    """Return the backend's modules in the order in which they are asked; ``LoweringConfig`` is not among them."""
    return [
        DotProduct(),
        ContractionTiling(),
        ConvolutionTiling(),
        ReductionTiling(),
        AttentionTiling(),
        ElementwiseTiling(),
        SeveralResultsTiling(),
        ParallelDistribution(),
        Lowering(),
    ]
