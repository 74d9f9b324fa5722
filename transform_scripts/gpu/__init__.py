"""Transform modules that all targets share whose workgroups have threads; each target adds how vectors are lowered."""

from mlir_sched.transform_scripts.gpu.contraction import ContractionTiling
from mlir_sched.transform_scripts.gpu.convolution import ConvolutionTiling
from mlir_sched.transform_scripts.gpu.elementwise import ElementwiseTiling, LinearElementwise
from mlir_sched.transform_scripts.gpu.reduction import LinearReduction, ReductionTiling
from mlir_sched.transform_scripts.gpu.shared_contraction import SharedContraction
from mlir_sched.transform_scripts.gpu.subgroup_reduction import SubgroupReduction
from mlir_sched.transform_scripts.gpu.thread_distribution import ThreadDistribution
from mlir_sched.transform_scripts.module import TransformModule

__all__ = [
    "ContractionTiling",
    "ConvolutionTiling",
    "ElementwiseTiling",
    "LinearElementwise",
    "LinearReduction",
    "ReductionTiling",
    "SharedContraction",
    "SubgroupReduction",
    "ThreadDistribution",
    "shared_modules",
]


def shared_modules() -> list[TransformModule]:
    """Return the modules that name no target, in the order in which they are asked; lowering has to follow them."""
    return [
        ContractionTiling(),
        SharedContraction(),
        ConvolutionTiling(),
        ReductionTiling(),
        ElementwiseTiling(),
        LinearElementwise(),
        LinearReduction(),
        ThreadDistribution(),
    ]
