"""Rewrites of the whole program that a transform library makes before IREE forms dispatches."""

from collections.abc import Callable, Mapping

from mlir_sched.program.rewrites.channels_last import ChannelsLast
from mlir_sched.program.rewrites.channels_last_gather import ChannelsLastGather
from mlir_sched.program.rewrites.composition import Composition
from mlir_sched.program.rewrites.contiguous_filters import ContiguousFilters
from mlir_sched.program.rewrites.decomposed_attention import DecomposedAttention
from mlir_sched.program.rewrites.fused_padding import FusedPadding
from mlir_sched.program.rewrites.global_mean import GlobalMean
from mlir_sched.program.rewrites.packed_weights import PackedWeights
from mlir_sched.program.rewrites.padded_convolution import PaddedConvolution
from mlir_sched.program.rewrites.reshaped_padding import ReshapedPadding
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.single_dispatch import SingleDispatch
from mlir_sched.program.rewrites.split_reduction import SplitReduction
from mlir_sched.program.rewrites.transposed_convolution import TransposedConvolution
from mlir_sched.program.rewrites.winograd import Winograd

__all__ = [
    "REWRITES",
    "ChannelsLast",
    "ChannelsLastGather",
    "Composition",
    "ContiguousFilters",
    "DecomposedAttention",
    "FusedPadding",
    "GlobalMean",
    "PackedWeights",
    "PaddedConvolution",
    "ProgramRewrite",
    "ReshapedPadding",
    "SingleDispatch",
    "SplitReduction",
    "TransposedConvolution",
    "Winograd",
]


def cpu_rewrites(cores: int) -> tuple[ProgramRewrite, ...]:
    """Return every rewrite that is worth trying on ``cores`` cores of a CPU."""
    transposed = (TransposedConvolution(split) for split in range(3))
    padded = (PaddedConvolution(), ReshapedPadding())
    attention = (DecomposedAttention(), Composition(DecomposedAttention(), PackedWeights()))
    layout = ChannelsLast(cancel=True)
    refined = (*_refined(layout), *_refined(layout, DecomposedAttention()))
    layouts: tuple[ProgramRewrite, ...] = (ChannelsLast(), PackedWeights(), *refined, ContiguousFilters())
    return (SingleDispatch(), SplitReduction(cores), *attention, *layouts, *padded, Winograd(), *transposed)


def _refined(first: ProgramRewrite, *others: ProgramRewrite) -> tuple[ProgramRewrite, ...]:
    """Return what refines the layout of a network: packed weights, without and with fused padding."""
    packed = (first, *others, PackedWeights())
    return Composition(*packed), Composition(*packed, FusedPadding())


def gpu_rewrites(cores: int) -> tuple[ProgramRewrite, ...]:
    """Return every rewrite that is worth trying on a GPU; what suits a CPU's vectors and caches is not."""
    del cores
    transposed = (TransposedConvolution(split) for split in range(3))
    return (DecomposedAttention(), ChannelsLast(), Winograd(), *transposed)


REWRITES: Mapping[str, Callable[[int], tuple[ProgramRewrite, ...]]] = {"cpu": cpu_rewrites, "gpu": gpu_rewrites}
"""What makes the rewrites that are worth trying, given the number of cores, by the kind of device
(``TargetKind.rewrites``)."""
