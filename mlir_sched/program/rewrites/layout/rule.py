"""The interface of a rule: what a kind of op does to layouts, and how the op is computed channels last."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, TypeVar

from iree.compiler.dialects import transform

from mlir_sched.program.rewrites.layout.channel_dims import Dims, Form, Order
from mlir_sched.program.rewrites.replacement import match_dag, operand_of
from mlir_sched.program.rewrites.site_rewrite import OpSite

Orders = Callable[[Any], Order]
"""Returns the order of a value's dims in memory."""
Axes = Sequence[int | None]
T = TypeVar("T")


class Rule(ABC):
    """What one kind of op does to layouts; ops of one name have one rule.

    Attributes:
        names: Names of the ops.
        effect: What they do to channels, for the documentation.
        form: For which orders they can be computed.
    """

    names: ClassVar[tuple[str, ...]]
    effect: ClassVar[str]
    form: ClassVar[Form] = Form.SAME

    @abstractmethod
    def fits(self, op: Any) -> bool:
        """Say whether the rule is right for an op of one of the names, with one result."""

    @abstractmethod
    def build(self, op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
        """Return the op's result in its order, of what it is computed from, all in their orders."""

    def inputs(self, op: Any) -> list[Any]:
        """Return the tensors that the result is computed from; by default the operands."""
        return list(op.operands)

    def axes(self, op: Any) -> list[Axes]:
        """Return the axes of the dims of all inputs, then of the result; by default those of equal places."""
        return [range(value.type.rank) for value in (*self.inputs(op), op.result)]

    def channels(self, op: Any) -> Dims:  # noqa: ARG002 - most ops do not say
        """Return the axes that are channels whatever is around; by default none."""
        return frozenset()

    def marked(self, op: Any, result: Any) -> Any:  # noqa: ARG002 - for others
        """Return the op that carries the mark of the rewrite, given the result that was built; by default none.

        Replacements that IREE fuses with others, moves or folds have none.
        """
        return None

    def kind(self, op: Any) -> tuple[Hashable, ...]:
        """Return a key that is equal for ops that one replacement is right for."""
        return OpSite(op).kind

    def match(self, root: Any, op: Any) -> None:
        """Emit the comparison of an op with this one, in a matcher."""
        transform.MatchOperationNameOp(root, [op.name])
        match_dag(op, list(op.operands), root)

    def handles(self, handle: Any, op: Any) -> list[Any]:
        """Emit handles on the inputs, from one on the op."""
        return [operand_of(handle, number) for number in range(len(op.operands))]


def in_order(values: Sequence[T], order: Order) -> list[T]:
    """Return what belongs to dims, as the dims lie in memory."""
    return [values[dim] for dim in order]
