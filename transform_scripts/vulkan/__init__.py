"""Transform modules for IREE's vulkan-spirv backend."""

from mlir_sched.transform_scripts.gpu import (
    ContractionTiling,
    ConvolutionTiling,
    ElementwiseTiling,
    SharedContraction,
    ThreadDistribution,
)
from mlir_sched.transform_scripts.module import TransformModule
from mlir_sched.transform_scripts.vulkan.lowering import Lowering
from mlir_sched.transform_scripts.vulkan.lowering_config import LoweringConfig

__all__ = ["Lowering", "LoweringConfig", "default_modules"]


def default_modules() -> list[TransformModule]:
    """Return the target's modules in the order in which they are asked."""
    return [
        LoweringConfig(),
        ContractionTiling(),
        SharedContraction(),
        ConvolutionTiling(),
        ElementwiseTiling(),
        ThreadDistribution(),
        Lowering(),
    ]
