"""Values as ops read and make them, and how a script finds each from a handle on the op."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.linalg_ops import COLLAPSE, EXPAND, GENERIC
from mlir_sched.program.rewrites.placed.body import EXTRACT, Body
from mlir_sched.program.rewrites.replacement import operand_of, operands_of, ops_named, result_of, split


@dataclass(frozen=True)
class Link:
    """A value as an operand of an op.

    Attributes:
        op: The op.
        place: Which of its operands; below 0, counted from the end.
    """

    op: Any
    place: int

    @property
    def values(self) -> tuple[Any, ...]:
        """The only value, or all of several."""
        return (list(self.op.operands)[self.place],)

    @property
    def value(self) -> Any:
        """The only value."""
        (value,) = self.values
        return value

    @property
    def form(self) -> Hashable:
        """A key, equal for links that a script finds alike from their ops."""
        return type(self).__name__, self.place

    def handle(self, op: Any) -> Any:
        """Emit a handle on the values, from one on the op."""
        return operand_of(op, self.place)


class Made(Link):
    """A value as a result of an op; the place is the number of the result."""

    @property
    def values(self) -> tuple[Any, ...]:
        """The result."""
        return (self.op.results[self.place],)

    def handle(self, op: Any) -> Any:
        """Emit a handle on the result."""
        return result_of(op, self.place)


class Read(Link):
    """A tensor that the body of an op reads elements of; the place is that among all reads."""

    @property
    def values(self) -> tuple[Any, ...]:
        """The tensor."""
        return (Body(self.op).reads[self.place].operands[0],)

    def handle(self, op: Any) -> Any:
        """Emit a handle on the tensor."""
        return operand_of(split(ops_named(op, EXTRACT), len(Body(self.op).reads))[self.place], 0)


class Operands(Link):
    """All operands of an op but the last ones; the place is the number of these."""

    @property
    def values(self) -> tuple[Any, ...]:
        """The operands."""
        return tuple(self.op.operands)[: len(self.op.operands) - self.place]

    def handle(self, op: Any) -> Any:
        """Emit a handle on the operands."""
        return operands_of(op, self.place)


def counting(op: Any) -> list[Link]:
    """Return what the body of an op takes for indices of loops: its operands that count up, and what these are of."""
    body = Body(op)
    arguments = enumerate(body.arguments if op.name == GENERIC else ())
    found = [Link(op, place) for place, argument in arguments if body.counted_loop(argument) is not None]
    for link in found:
        if (made := producer(link.value)).name in (EXPAND, COLLAPSE):
            found.append(Link(made, 0))
    return found
