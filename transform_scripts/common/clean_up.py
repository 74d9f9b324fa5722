"""Patterns between the steps of a script, and the vectorization of peeled loops."""

from __future__ import annotations

from collections.abc import Sequence

from mlir_sched.transform_scripts.schedule import Loop, Schedule

CLEAN_UP = (
    "linalg.tiling_canonicalization",
    "scf.for_loop_canonicalization",
    "tensor.fold_tensor_empty",
    "canonicalization",
)
"""Patterns that make tile shapes static again after tiling, fusion or peeling."""


def clean_up(s: Schedule) -> None:
    """Canonicalize between tiling steps, so that shapes are static where they can be."""
    s.emit.apply_patterns(*CLEAN_UP)
    s.emit.cse()


def fold_subsets_into_transfers(s: Schedule) -> None:
    """Canonicalize vectorized code, so that it reads and writes the tensors themselves instead of slices of them."""
    s.emit.apply_patterns(*CLEAN_UP[:3], "tensor.fold_tensor_subset_ops_into_vector_transfers", CLEAN_UP[3])
    s.emit.cse()


def vectorize_peeled(s: Schedule, loops: Sequence[Loop], ops: Sequence[int]) -> None:
    """Cut the last iterations off every loop whose step does not divide its trip, and vectorize what results.

    Args:
        s: The schedule.
        loops: Loops around the ops, outermost first; inner ones are peeled first, or their handles would be lost.
        ops: Indices of the ops; each is found in full tiles and in edges.
    """
    for loop in reversed(loops):
        if not loop.divides:
            s.emit.peel(loop.handle)
    clean_up(s)
    s.emit.vectorize(s.emit.match_ops(sorted({s.dispatch.ops[index].name for index in ops})))
    for index in ops:
        s.finish(s.ops[index])
