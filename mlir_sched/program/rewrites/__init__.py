"""Rewrites of the whole program that a transform library makes before IREE forms dispatches."""

from collections.abc import Callable, Mapping

from mlir_sched.program.rewrites.attention.decomposed import Attentions, DecomposedAttention
from mlir_sched.program.rewrites.channels.permuted_weights import PermutedWeights
from mlir_sched.program.rewrites.convolution.contiguous_filters import ContiguousFilters
from mlir_sched.program.rewrites.convolution.padded import PaddedConvolution
from mlir_sched.program.rewrites.convolution.transposed import TransposedConvolution
from mlir_sched.program.rewrites.convolution.winograd import Convolutions, Winograd
from mlir_sched.program.rewrites.dispatches.single_dispatch import SingleDispatch
from mlir_sched.program.rewrites.dispatches.split_reduction import SplitReduction
from mlir_sched.program.rewrites.folding.folded_constants import FoldedConstants
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast
from mlir_sched.program.rewrites.padding.fused import FusedPadding
from mlir_sched.program.rewrites.padding.reshaped import ReshapedPadding
from mlir_sched.program.rewrites.products.packed import PackedWeights
from mlir_sched.program.rewrites.recurrent.fused_gates import FusedGates
from mlir_sched.program.rewrites.recurrent.joined_steps import JoinedSteps
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.site_kind import SiteKind
from mlir_sched.program.rewrites.walked_program import CPU, GPU

Rewrites = tuple[ProgramRewrite, ...]
"""Rewrites that one program is made by, one after the other."""
LAYOUT: Rewrites = (ChannelsLast(),)
"""What decides the layout of a whole network."""
ATTENTION: Rewrites = (DecomposedAttention(),)
"""What makes dispatches that scripts can be written for of those that take most of a transformer's time."""


def cpu_rewrites(cores: int) -> tuple[Rewrites, ...]:
    """Return everything that is worth trying on ``cores`` cores of a CPU."""
    refined = (*_refined(LAYOUT), *_refined((*LAYOUT, *ATTENTION)))
    return (
        (SingleDispatch(),),
        (SplitReduction(cores),),
        (JoinedSteps(),),
        (FusedGates(),),
        (FusedGates(), PackedWeights()),
        (FoldedConstants(),),
        (PermutedWeights(),),
        ATTENTION,
        (*ATTENTION, PackedWeights()),
        LAYOUT,
        (PackedWeights(),),
        *refined,
        (ContiguousFilters(),),
        (PaddedConvolution(),),
        (ReshapedPadding(),),
        (Winograd(),),
        *_TRANSPOSED,
    )


def gpu_rewrites(cores: int) -> tuple[Rewrites, ...]:
    """Return everything that is worth trying on a GPU; what suits a CPU's vectors and caches is not."""
    del cores
    return (JoinedSteps(),), (FoldedConstants(),), (PermutedWeights(),), ATTENTION, LAYOUT, (Winograd(),), *_TRANSPOSED


def _refined(rewrites: Rewrites) -> tuple[Rewrites, ...]:
    """Return what refines the layout of a network: packed weights, without and with fused padding."""
    packed = (*rewrites, PackedWeights())
    return packed, (*packed, FusedPadding())


_TRANSPOSED: tuple[Rewrites, ...] = tuple((TransposedConvolution(split),) for split in range(3))
REWRITES: Mapping[str, Callable[[int], tuple[Rewrites, ...]]] = {CPU: cpu_rewrites, GPU: gpu_rewrites}
"""What makes the rewrites that are worth trying, given the number of cores, by the kind of device
(``TargetKind.rewrites``)."""
SITE_KINDS: Mapping[str, tuple[SiteKind, ...]] = {CPU: (Convolutions(), Attentions()), GPU: (Convolutions(),)}
"""The sites that have a choice of algorithms, by the kind of device. GPUs have no transform module for attention in one
dispatch."""
