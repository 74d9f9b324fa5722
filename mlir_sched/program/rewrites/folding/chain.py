"""Linear ops with constant weights, and what follows them: ops that scale and shift every channel of the result.

A chain is such an op and what alone reads it, up to the last op that scales or shifts: element-wise ops that compute an
affine function of each element, with numbers that depend on the channel alone, and moves of elements between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.folding.linear import INIT, Linear, starts_with_zeros
from mlir_sched.program.rewrites.folding.moves import is_move
from mlir_sched.program.rewrites.site_rewrite import OpSite

Path = tuple[int, ...]
"""The way from the last op of a chain to a value: one of its operands, one of those of what makes it, and so on."""


@dataclass(frozen=True)
class Step:
    """An op of a chain.

    Attributes:
        op: The op.
        place: Which of its operands the chain goes through.
    """

    op: Any
    place: int

    @property
    def is_move(self) -> bool:
        """Whether the op only moves elements."""
        return is_move(self.op)

    @property
    def numbers(self) -> list[int]:
        """Its operands that scale or shift."""
        return [] if self.is_move else [place for place in range(len(self.op.operands) - 1) if place != self.place]


@dataclass(frozen=True)
class Chain:
    """A linear op with what scales and shifts its result.

    Attributes:
        linear: The linear op.
        steps: The ops behind it, in their order; the last one is no move.
        copies: The ops that repeat or transpose the weights, from the linear op back; what they read is scaled.
        scales: Whether the results are scaled, and not only shifted.
        shifts: Whether they are shifted.
    """

    linear: Linear
    steps: tuple[Step, ...]
    copies: tuple[Any, ...]
    scales: bool
    shifts: bool

    @property
    def root(self) -> Any:
        """The last op."""
        return self.steps[-1].op

    @property
    def result(self) -> Any:
        """Its result."""
        return self.root.results[0]

    @property
    def has_bias(self) -> bool:
        """Whether the sums start with a number for each channel, in place of zeros."""
        return not starts_with_zeros(self.linear.op)

    @property
    def along(self) -> Path:
        """The way to the linear op."""
        return tuple(step.place for step in reversed(self.steps))

    @property
    def ops(self) -> list[Path]:
        """The ways to all ops that a matcher compares, the last op first."""
        steps = [self.along[:number] for number in range(len(self.along))]
        copies = [(*self.along, self.linear.weights, *[0] * number) for number in range(len(self.copies))]
        start = [(*self.along, INIT), *([] if self.has_bias else [(*self.along, INIT, 0)])]
        return [*steps, self.along, *copies, *start]

    @property
    def numbers(self) -> list[tuple[Step, list[Path]]]:
        """The steps that scale or shift, in their order, each with the ways to its numbers."""
        ways = [self.along[:number] for number in reversed(range(len(self.along)))]
        steps = zip(self.steps, ways, strict=True)
        return [(step, [(*way, place) for place in step.numbers]) for step, way in steps if not step.is_move]

    @property
    def image(self) -> Path:
        """The way to the operand of the linear op that is not constant."""
        return *self.along, 1 - self.linear.weights

    @property
    def weights(self) -> Path:
        """The way to the weights, in front of all copies."""
        return *self.along, self.linear.weights, *[0] * len(self.copies)

    @property
    def bias(self) -> Path:
        """The way to the numbers that the sums start with, where there are any."""
        return *self.along, INIT, 0

    @property
    def leaves(self) -> list[Path]:
        """The ways to the values that the replacement is computed from."""
        numbers = [way for _, ways in self.numbers for way in ways]
        return [self.image, self.weights, *([self.bias] if self.has_bias else []), *numbers]

    @property
    def inputs(self) -> list[Any]:
        """Those values."""
        return [_value_at(self.root, way) for way in self.leaves]

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key, equal for chains that the same matcher finds, and that the same replacement is right for."""
        return self.seen_from(self.root)

    def seen_from(self, root: Any) -> tuple[Any, ...]:
        """Return what a matcher of the chain compares of a last op, and of what makes that op's operands."""
        return *self.ops, *(OpSite(op).kind for op in self.made_of(root))

    def made_of(self, root: Any) -> list[Any]:
        """Return the ops that the ways of :attr:`ops` lead to from a last op; none where one of the ways ends early."""
        found = [root, *(_producer_at(root, way) for way in self.ops[1:])]
        return [] if any(op is None for op in found) else found


def _producer_at(root: Any, way: Path) -> Any:
    """Return the op that a way leads to; None where there is none."""
    value = _value_at(root, way)
    return None if value is None else producer(value)


def _value_at(root: Any, way: Path) -> Any:
    """Return the value that a way leads to; None where there is none."""
    op = root if len(way) == 1 else _producer_at(root, way[:-1])
    return op.operands[way[-1]] if op is not None and way[-1] < len(op.operands) else None
