"""Transform modules for IREE's llvm-cpu backend."""

from mlir_sched.transform_scripts.llvm_cpu.contraction import Contraction
from mlir_sched.transform_scripts.llvm_cpu.convolution import Convolution
from mlir_sched.transform_scripts.llvm_cpu.dot_product import DotProduct
from mlir_sched.transform_scripts.llvm_cpu.elementwise import Elementwise
from mlir_sched.transform_scripts.llvm_cpu.lowering import Lowering
from mlir_sched.transform_scripts.llvm_cpu.lowering_config import LoweringConfig
from mlir_sched.transform_scripts.llvm_cpu.parallel_distribution import ParallelDistribution
from mlir_sched.transform_scripts.llvm_cpu.reduction import Reduction
from mlir_sched.transform_scripts.module import TransformModule

__all__ = [
    "Contraction",
    "Convolution",
    "DotProduct",
    "Elementwise",
    "Lowering",
    "LoweringConfig",
    "ParallelDistribution",
    "Reduction",
    "default_modules",
]


def default_modules() -> list[TransformModule]:
    """Return the backend's modules in the order in which they are asked.

    ``LoweringConfig`` is not among them: it won on none of the 14 operators of ``benchmarks/operators``.
    """
    return [
        DotProduct(),
        Contraction(),
        Convolution(),
        Reduction(),
        Elementwise(),
        ParallelDistribution(),
        Lowering(),
    ]
