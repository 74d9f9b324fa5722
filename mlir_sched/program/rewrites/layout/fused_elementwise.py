"""Element-wise ops, fused before layouts are chosen."""

from dataclasses import dataclass

from mlir_sched.program.rewrites.pass_rewrite import PassRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram


@dataclass(frozen=True)
class FusedElementwise(PassRewrite):
    """Runs IREE's pass that fuses element-wise ops (ElementwiseOpFusion.cpp), which IREE runs later anyhow."""

    name = "fused_elementwise"
    iree_pass = "iree-dispatch-creation-elementwise-op-fusion"

    def finds(self, program: WalkedProgram) -> bool:
        """Say whether the program has such ops."""
        return any(op.name == "linalg.generic" for op in program.ops)
