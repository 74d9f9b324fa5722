"""The interface of a rule: what a kind of op does to layouts, and how the op is computed channels last."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from iree.compiler import ir

from mlir_sched.attributes import REWRITTEN
from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.dag_site import Path
from mlir_sched.program.rewrites.layout.channel_dims import Dims, Form, Order
from mlir_sched.program.rewrites.replacement import operand_of, operands_of

NAME = "channels_last"
"""Name of the rewrite that the rules are of."""
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
        reads: Of how many of the first operands the result is computed; None for all.
    """

    names: ClassVar[tuple[str, ...]]
    effect: ClassVar[str]
    form: ClassVar[Form] = Form.SAME
    reads: ClassVar[int | None] = None

    def fits(self, op: Any) -> bool:  # noqa: ARG002 - most are right for all
        """Say whether the rule is right for an op of one of the names, from tensors of known sizes to one of them."""
        return True

    @abstractmethod
    def build(self, op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
        """Return the op's result in its order, of what it is computed from, all in their orders."""

    def inputs(self, op: Any) -> list[Any]:
        """Return the tensors that the result is computed from."""
        return list(op.operands)[: self.reads]

    def handles(self, handle: Any, op: Any) -> list[Any]:  # noqa: ARG002 - for others
        """Emit handles on the inputs, from one on the op."""
        return [operands_of(handle) if self.reads is None else operand_of(handle, *range(self.reads))]

    def axes(self, op: Any) -> list[Axes]:
        """Return the axes of the dims of all inputs, then of the result; by default those of equal places."""
        return [range(value.type.rank) for value in (*self.inputs(op), op.result)]

    def channels(self, op: Any) -> Dims:  # noqa: ARG002 - most ops do not say
        """Return the axes that are channels whatever is around; by default none."""
        return frozenset()

    def any_size(self, op: Any) -> bool:  # noqa: ARG002 - for others
        """Say whether what is built is right for tensors of other sizes, too, where these are not 1; by default not."""
        return False

    def compared(self, op: Any) -> Mapping[Path, Any]:
        """Return the ops that a script compares, by the ways to them; by default the op alone."""
        return {(): op}


def in_order(values: Sequence[T], order: Order) -> list[T]:
    """Return what belongs to dims, as the dims lie in memory."""
    return [values[dim] for dim in order]


def marked(result: Any) -> Any:
    """Return a result whose op is marked as put in place by the rewrite; others are fused, moved or folded."""
    producer(result).attributes[REWRITTEN] = ir.StringAttr.get(NAME)
    return result
