"""What is known of a form of programs that IREE compiles wrong, without a word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import named_attributes
from mlir_sched.program.rewrites.linalg_ops import barrier
from mlir_sched.program.rewrites.walked_program import WalkedProgram

_SEGMENTS = "operandSegmentSizes"
"""Attribute that counts operands; scripts of transform ops do not find ops by it."""


@dataclass(frozen=True)
class Read:
    """An op that reads a value.

    Attributes:
        op: The op.
        number: Which of its operands the value is.
    """

    op: Any
    number: int

    @property
    def inputs(self) -> list[Any]:
        """The value."""
        return [self.op.operands[self.number]]

    @property
    def result(self) -> Any:
        """The value, which is replaced for this reader alone."""
        return self.op.operands[self.number]

    @property
    def number_types(self) -> list[ir.Type]:
        """The types of the numbers in all operands."""
        types = (value.type for value in self.op.operands)
        return [each.element_type if isinstance(each, ir.ShapedType) else each for each in types]

    @property
    def form(self) -> dict[str, ir.Attribute]:
        """The attributes by which a script finds the op."""
        return {each.name: each.attr for each in named_attributes(self.op) if each.name != _SEGMENTS}

    @property
    def result_type(self) -> ir.Type | None:
        """The type of the op's only result; None where it has several."""
        return self.op.results[0].type if len(self.op.results) == 1 else None

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key, equal for reads that a script does not tell apart."""
        return self.op.name, self.number, self.result.type, self.result_type, *self.form.items()


@dataclass(frozen=True)
class WrongForm:
    """A form of programs that IREE compiles wrong, and what mends it.

    Attributes:
        name: Unique among the forms.
        form: What a program of this form has, as in "the program has ...".
        fault: What IREE makes of it, a main clause.
        remedy: What mends it, a main clause.
        versions: Release series of IREE that are known to do so.
        reads: Returns the reads of a program, as it enters IREE's preprocessing phase, that are repaired.
        repair: Returns what is read in place of a value, by ops at the current insertion point.
    """

    name: str
    form: str
    fault: str
    remedy: str
    versions: tuple[str, ...]
    reads: Callable[[WalkedProgram], list[Read]]
    repair: Callable[[Any], Any] = barrier

    @property
    def text(self) -> str:
        """What is wrong, and what mends it, in one sentence without its full stop."""
        return f"the program has {self.form}, and IREE {' and '.join(self.versions)} {self.fault}; {self.remedy}"
