"""The last stages of every llvm-cpu script: from vectorized tensors to vector-lowered loops on buffers."""

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import patterns
from mlir_sched.transform_scripts.module import LoweringModule, Sketch
from mlir_sched.transform_scripts.schedule import Schedule

NO_PIPELINE = "#iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>"
WIDENING = "iree-llvmcpu-expand-f16-op-to-f32"
"""The pass that widens maxima of f16 numbers to f32; it knows numbers and no vectors.

IREE runs it behind scripts. Where these leave vectors of such maxima, the compiler rejects the dispatch or crashes, so
that scripts run the pass themselves, while the ops are still written for numbers. What combines the lanes of a
reduction has to be vectorized in front of the pass, because the vectorizer knows no reduction by widened maxima; such
combinations stay ``vector.multi_reduction`` ops, which the pass leaves alone. Minima, and maxima that drop NaNs, need
none of this. Source: IREE 3.13, ``ExpandF16OpToF32Pass.cpp``, and the order of passes in ``LLVMCPU/Passes.cpp``.
"""


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


def passes_before_vectors(dispatch: Dispatch) -> tuple[str, ...]:
    """Return the passes that have to run before ops of a dispatch become vectors."""
    return (WIDENING,) if any(op.takes_f16_maxima for op in dispatch.ops) else ()


def require_lanes(s: Schedule, op: LinalgOp, lanes: int) -> None:
    """Refuse a reduction by maxima of f16 numbers in one lane, whose combination would be no reduction any more."""
    s.require(lanes > 1 or not op.takes_f16_maxima, "maxima of f16 numbers without lanes become no vectors")
