"""Rewrites by one of IREE's passes, before another rewrite that has to come after it."""

from typing import Any, ClassVar

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.program.rewrites.replacement import append_sequence, ops_named
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram


class PassRewrite(ProgramRewrite):
    """Runs a pass on every ``util.func``.

    Attributes:
        iree_pass: The pass.
    """

    iree_pass: ClassVar[str]

    def append(self, library: ir.Module, program: WalkedProgram, found: Any) -> str:
        """Append the sequence that runs the pass; see :meth:`ProgramRewrite.append`."""
        del program, found

        def rewrite(module: Any) -> Any:
            functions = ops_named(module, "util.func")
            transform.ApplyRegisteredPassOp(transform.AnyOpType.get(), functions, self.iree_pass)
            return module

        append_sequence(library, self.name, rewrite, consumes=True)
        return self.name
