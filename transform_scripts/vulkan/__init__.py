"""Transform modules for IREE's vulkan-spirv backend."""

from mlir_sched.transform_scripts.common.thread_distribution import ThreadDistribution
from mlir_sched.transform_scripts.module import TransformModule
from mlir_sched.transform_scripts.vulkan.contraction import ContractionTiling
from mlir_sched.transform_scripts.vulkan.elementwise import ElementwiseTiling
from mlir_sched.transform_scripts.vulkan.lowering import Lowering
from mlir_sched.transform_scripts.vulkan.lowering_config import LoweringConfig

__all__ = [
    "ContractionTiling",
    "ElementwiseTiling",
    "Lowering",
    "LoweringConfig",
    "ThreadDistribution",
    "default_modules",
]


def default_modules() -> list[TransformModule]:
    """Return the backend's modules in the order in which they are asked."""
    return [LoweringConfig(), ContractionTiling(), ElementwiseTiling(), ThreadDistribution(), Lowering()]
