"""The tail of every llvm-cpu script: from vectorized tensors to vector-lowered loops on buffers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.target import Target
from mlir_sched.transform_scripts.module import Sketch, Stage, Step, TransformModule
from mlir_sched.transform_scripts.schedule import Loop, Schedule

NO_PIPELINE = "#iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>"
CLEAN_UP = (
    "linalg.tiling_canonicalization",
    "scf.for_loop_canonicalization",
    "tensor.fold_tensor_empty",
    "canonicalization",
)
"""Patterns that make tile shapes static again after tiling, fusion or peeling."""


class Lowering(TransformModule):
    """Bufferizes the vectorized function, lowers its vectors and takes it out of IREE's own pipelines."""

    name: ClassVar[str] = "lowering"
    backends: ClassVar[tuple[str, ...]] = ("llvm-cpu",)

    def extend(self, sketch: Sketch, op: LinalgOp, dispatch: Dispatch, target: Target) -> Iterable[Sketch]:
        """Complete sketches whose every op is scheduled."""
        del target
        scheduled = len(sketch.claimed) == len(dispatch.ops) and not sketch.complete
        if not scheduled or op.index != dispatch.root.index:
            return (sketch,)
        return (sketch.extended("", Step(Stage.LOWER, self.name, lower), complete=True),)


def lower(s: Schedule) -> None:
    """Emit the tail.

    Source: IREE ``LLVMCPU/Passes.cpp`` (the order of its CPU pipelines), measured in IREE 3.13.
    """
    s.emit.apply_patterns(*CLEAN_UP[:3], "tensor.fold_tensor_subset_ops_into_vector_transfers", CLEAN_UP[3])
    s.emit.cse()
    s.emit.run_pass("iree-codegen-optimize-tensor-insert-extract-slices")
    s.emit.op("transform.iree.eliminate_empty_tensors")
    s.emit.run_pass("iree-codegen-llvmcpu-bufferization-pipeline")
    s.emit.run_pass("iree-codegen-remove-single-iteration-loop")
    s.emit.run_pass("iree-codegen-llvmcpu-vector-lowering-pipeline")
    s.emit.annotate(None, "translation_info", NO_PIPELINE)


def clean_up(s: Schedule) -> None:
    """Canonicalize between tiling steps, so that shapes are static where they can be."""
    s.emit.apply_patterns(*CLEAN_UP)
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
