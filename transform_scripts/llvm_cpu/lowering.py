"""The last stages of every llvm-cpu script: from vectorized tensors to vector-lowered loops on buffers."""

from __future__ import annotations

from typing import ClassVar

from mlir_sched.transform_scripts import patterns
from mlir_sched.transform_scripts.module import LoweringModule
from mlir_sched.transform_scripts.schedule import Schedule

NO_PIPELINE = "#iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>"


class Lowering(LoweringModule):
    """A module that bufferizes the vectorized function, lowers its vectors and takes it out of IREE's own pipelines.

    Source: IREE ``LLVMCPU/Passes.cpp`` (the order of its CPU pipelines), measured in IREE 3.13.
    """

    name: ClassVar[str] = "lowering"
    backends: ClassVar[tuple[str, ...]] = ("llvm-cpu",)

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
