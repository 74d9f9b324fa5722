"""The last stages of every llvm-cpu script: from vectorized tensors to vector-lowered loops on buffers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import patterns
from mlir_sched.transform_scripts.llvm_cpu.f16_maxima import passes_before_vectors
from mlir_sched.transform_scripts.module import LoweringModule, Sketch
from mlir_sched.transform_scripts.schedule import Schedule

NO_PIPELINE = "#iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>"


class Lowering(LoweringModule):
    """A module that bufferizes the vectorized function, lowers its vectors and takes it out of IREE's own pipelines.

    Source: IREE ``LLVMCPU/Passes.cpp`` (the order of its CPU pipelines), measured in IREE 3.13.
    """

    name: ClassVar[str] = "lowering"
    backends: ClassVar[tuple[str, ...]] = ("llvm-cpu",)

    def extend(self, sketch: Sketch, op: LinalgOp, dispatch: Dispatch, target: Target) -> Iterable[Sketch]:
        """Complete sketches whose every op is scheduled; maxima of f16 numbers are widened before they are vectors."""
        passes = passes_before_vectors(dispatch)
        for made in super().extend(sketch, op, dispatch, target):
            yield made if made is sketch else replace(made, passes=passes)

    def lower(self, s: Schedule) -> None:
        """Emit the stages from tensors to buffers and lowered vectors."""
        s.apply_patterns(*patterns.FOLD_SUBSETS, cse=True)
        s.run_pass("iree-codegen-optimize-tensor-insert-extract-slices")
        s.raw("transform.iree.eliminate_empty_tensors")
        s.run_pass("iree-codegen-llvmcpu-bufferization-pipeline")
        s.run_pass("iree-codegen-remove-single-iteration-loop")
        s.include_on_buffers()
        s.run_pass("iree-codegen-llvmcpu-vector-lowering-pipeline")
        s.annotate("translation_info", NO_PIPELINE)
