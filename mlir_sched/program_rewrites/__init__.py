"""Rewrites of the whole program that a transform library makes before IREE forms dispatches."""

from mlir_sched.program_rewrites.rewrite import ProgramRewrite
from mlir_sched.program_rewrites.single_dispatch import SingleDispatch
from mlir_sched.program_rewrites.transposed_convolution import TransposedConvolution

__all__ = ["ProgramRewrite", "SingleDispatch", "TransposedConvolution", "default_rewrites"]


def default_rewrites() -> tuple[ProgramRewrite, ...]:
    """Return every rewrite that is worth a try on a CPU."""
    transposed = (TransposedConvolution(split) for split in range(3))
    return (SingleDispatch(), *transposed)
