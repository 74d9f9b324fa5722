"""Element-wise ops, fused before layouts are chosen."""

from dataclasses import dataclass

from iree.compiler import ir

from mlir_sched.compiler.operations import walk
from mlir_sched.program.rewrites.pass_rewrite import PassRewrite


@dataclass(frozen=True)
class FusedElementwise(PassRewrite):
    """Runs IREE's pass that fuses element-wise ops (ElementwiseOpFusion.cpp), which IREE runs later anyhow."""

    name = "fused_elementwise"
    iree_pass = "iree-dispatch-creation-elementwise-op-fusion"

    def applies(self, program: ir.Module) -> bool:
        """Say whether the program has such ops."""
        return any(op.name == "linalg.generic" for op in walk(program.operation))
