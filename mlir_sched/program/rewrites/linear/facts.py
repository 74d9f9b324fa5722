"""What has to be known of the whole program to follow chains in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from mlir_sched.compiler.operations import only_use, producer
from mlir_sched.program.rewrites.constant_values import LOAD, global_of, is_constant
from mlir_sched.program.rewrites.convolution_ops import is_static_f32
from mlir_sched.program.rewrites.linalg_ops import COLLAPSE, EXPAND
from mlir_sched.program.rewrites.linear.linear_op import is_copy
from mlir_sched.program.rewrites.walked_program import WalkedProgram


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
    def of(program: WalkedProgram) -> Facts:
        """Return the facts of a program."""
        return Facts(program.constants, Counter(global_of(op) for op in program.ops if op.name == LOAD))

    def is_number(self, value: Any) -> bool:
        """Say whether a value is a constant tensor."""
        return is_static_f32(value) and is_constant(value, self.globals)

    def is_read_alone(self, value: Any) -> bool:
        """Say whether a constant, and what it is a reshape or a copy of, has no other reader."""
        op = producer(value)
        if only_use(value) is None or (op.name == LOAD and self.loads[global_of(op)] > 1):
            return False
        return not (op.name in (COLLAPSE, EXPAND) or is_copy(op)) or self.is_read_alone(op.operands[0])
