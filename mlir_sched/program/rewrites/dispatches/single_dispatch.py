"""A small program as one dispatch.

IREE gives an op that follows a full reduction a dispatch of its own, and every dispatch costs about a microsecond.
Where the whole program takes only a few microseconds, one dispatch for all its ops is faster.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import transform
from iree.compiler.dialects.transform import structured

from mlir_sched.program.rewrites.replacement import append_sequence, mark, require_number
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram

MAX_OPS = 8
"""Most linalg ops that one dispatch may hold; transform modules schedule hardly more."""
MAX_ELEMENTS = 1 << 20
"""Elements of the largest tensor above which the cost of a further dispatch does not show."""
_PASS = "iree-preprocessing-make-single-dispatch-for-function"


@dataclass(frozen=True)
class SingleDispatch(ProgramRewrite):
    """Puts all ops of a program with one function into one dispatch (IREE's MakeSingleDispatchForFunction.cpp)."""

    name = "single_dispatch"

    def finds(self, program: WalkedProgram) -> bool:
        """Say whether the program is one function of two to :data:`MAX_OPS` linalg ops on small static tensors.

        A full reduction has to be among the ops: IREE itself puts other ops into one dispatch where that pays.
        """
        functions = [op for op in program.module.operation.regions[0].blocks[0] if op.operation.name == "util.func"]
        if len(functions) != 1 or len(functions[0].operation.regions[0].blocks) != 1:
            return False
        ops = [op for op in functions[0].operation.regions[0].blocks[0] if op.operation.name.startswith("linalg.")]
        tensors = [value.type for op in ops for value in (*op.operation.operands, *op.operation.results)]
        small = all(
            t.has_static_shape and prod(t.shape) <= MAX_ELEMENTS for t in tensors if isinstance(t, ir.ShapedType)
        )
        return 2 <= len(ops) <= MAX_OPS and small and any(_is_full_reduction(op.operation) for op in ops)

    def append(self, library: ir.Module, program: WalkedProgram, found: Any) -> str:
        """Append the sequence that applies IREE's pass; see :meth:`ProgramRewrite.append`."""
        del program, found
        any_op = transform.AnyOpType.get()

        def rewrite(module: Any) -> Any:
            functions = structured.MatchOp(any_op, module, ops=ir.Attribute.parse('["util.func"]')).result
            require_number(functions, 1)
            made = transform.ApplyRegisteredPassOp(any_op, functions, _PASS).result
            mark(made, self.name)
            return module

        append_sequence(library, self.name, rewrite, consumes=True)
        return self.name


def _is_full_reduction(op: Any) -> bool:
    """Say whether an op computes one number from a tensor of several; one of numbers alone may be of constants."""
    sizes = [prod(value.type.shape) for value in op.operands if isinstance(value.type, ir.ShapedType)]
    return any(prod(result.type.shape) == 1 for result in op.results) and max(sizes) > 1
