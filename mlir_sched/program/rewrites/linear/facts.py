"""What has to be known of the whole program to follow chains in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import only_use, producer
from mlir_sched.program.rewrites.constant_values import LOAD, constant_globals, global_of, is_constant
from mlir_sched.program.rewrites.convolution_ops import is_static_f32
from mlir_sched.program.rewrites.linalg_ops import COLLAPSE, EXPAND
from mlir_sched.program.rewrites.linear.linear_op import is_copy


@dataclass(frozen=True)
class Facts:
    """What has to be known of the whole program.

    Attributes:
        globals: Symbols of the globals that are never written.
        loads: How often each global is loaded.
    """

    globals: frozenset[str]
    loads: Counter[str]

    @staticmethod
    def of(program: ir.Module, ops: Sequence[Any]) -> Facts:
        """Return the facts of a program, given all its ops."""
        return Facts(constant_globals(program), Counter(global_of(op) for op in ops if op.name == LOAD))

    def is_number(self, value: Any) -> bool:
        """Say whether a value is a constant tensor."""
        return is_static_f32(value) and is_constant(value, self.globals)

    def is_read_alone(self, value: Any) -> bool:
        """Say whether a constant, and what it is a reshape or a copy of, has no other reader."""
        op = producer(value)
        if only_use(value) is None or (op.name == LOAD and self.loads[global_of(op)] > 1):
            return False
        return not (op.name in (COLLAPSE, EXPAND) or is_copy(op)) or self.is_read_alone(op.operands[0])
