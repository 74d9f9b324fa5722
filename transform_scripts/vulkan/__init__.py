"""Transform modules for IREE's vulkan-spirv backend."""

from mlir_sched.transform_scripts.gpu import shared_modules
from mlir_sched.transform_scripts.module import TransformModule
from mlir_sched.transform_scripts.vulkan.cooperative_matrix import CooperativeMatrices
from mlir_sched.transform_scripts.vulkan.lowering import Lowering
from mlir_sched.transform_scripts.vulkan.lowering_config import LoweringConfig
from mlir_sched.transform_scripts.vulkan.promoted_config import PromotedConfig
from mlir_sched.transform_scripts.vulkan.subgroup_reduction import SubgroupReduction

__all__ = [
    "CooperativeMatrices",
    "Lowering",
    "LoweringConfig",
    "PromotedConfig",
    "SubgroupReduction",
    "default_modules",
]


def default_modules() -> list[TransformModule]:
    """Return the target's modules in the order in which they are asked."""
    return [
        LoweringConfig(),
        PromotedConfig(),
        CooperativeMatrices(),
        SubgroupReduction(),
        *shared_modules(),
        Lowering(),
    ]
