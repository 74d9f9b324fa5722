"""Linear ops with constant weights, and what scales and shifts the channels in front of them and behind them.

A chain is such an op, what alone reads it, up to the last op that scales or shifts, and what it alone reads, back to
the first such op: element-wise ops that compute an affine function of each element, with numbers that depend on the
channel alone, and moves of elements between them. Products with other tensors may follow, and what scales all of their
elements alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

from mlir_sched.program.rewrites.dag_site import Path
from mlir_sched.program.rewrites.linear.linear_op import INIT
from mlir_sched.program.rewrites.linear.placed import BehindLinear, PlacedStep, placed_in_front
from mlir_sched.program.rewrites.linear.step import Parts, Step


@dataclass(frozen=True)
class Chain(BehindLinear):
    """A linear op with what scales and shifts what it reads, and its result.

    Attributes:
        linear: The linear op.
        steps: The ops behind it, in their order; the last one may end a chain.
        ahead: The ops in front of it, the nearest one first; the last one is neither a move nor padding.
        copies: The ops that repeat or transpose the weights, from the linear op back; what they read is scaled.
        has_bias: Whether the sums start with a number for each channel, in place of zeros.
        of_result: What the ops behind do to each sum, together with the bias and with what those in front add.
    """

    ahead: tuple[Step, ...]
    copies: tuple[Any, ...]
    has_bias: bool
    of_result: Parts

    @property
    def inner(self) -> list[PlacedStep]:
        """The ops behind the linear op, up to the last one that scales or shifts in front of what multiplies."""
        return self.behind[: self._shifted]

    @property
    def outer(self) -> list[PlacedStep]:
        """The others: what multiplies by other tensors, and what moves and scales all elements alike."""
        return self.behind[self._shifted :]

    @property
    def _shifted(self) -> int:
        """How many ops stand in front of the place for the addition."""
        before = takewhile(lambda step: not step.multiplies, self.steps)
        return max((number for number, step in enumerate(before, 1) if step.is_affine), default=0)

    @property
    def in_front(self) -> list[PlacedStep]:
        """The ops in front of the linear op, the nearest one first."""
        return placed_in_front(self.ahead, (*self.along, self.linear.image))[0]

    @cached_property
    def ops(self) -> list[Path]:
        """The ways to all ops that a matcher compares, the last op first."""
        behind = [each.way for each in reversed(self.behind)]
        copies = [(*self.along, self.linear.weights, *[0] * number) for number in range(len(self.copies))]
        start = [(*self.along, INIT), *([] if self.has_bias else [(*self.along, INIT, 0)])]
        beside = [way for each in (*self.behind, *self.in_front) for way in each.start]
        return [*behind, self.along, *copies, *start, *beside, *(each.way for each in self.in_front)]

    @property
    def readers(self) -> dict[Path, int]:
        """How many ops may read the result of each op that is gone, by the ways to these."""
        return super().readers | {each.way: self.most_readers for each in self.in_front}

    @property
    def most_readers(self) -> int:
        """How many ops read the result of an op in front, at most."""
        return max((len([*step.op.results[0].uses]) for step in self.ahead), default=1)

    @property
    def image(self) -> Path:
        """The way to what the linear op, or the first op in front of it, reads and is not constant."""
        return placed_in_front(self.ahead, (*self.along, self.linear.image))[1]

    @property
    def weights(self) -> Path:
        """The way to the weights, in front of all copies."""
        return *self.along, self.linear.weights, *[0] * len(self.copies)

    @property
    def bias(self) -> list[Path]:
        """The way to the numbers that the sums start with, if there are any."""
        return [(*self.along, INIT, 0)] if self.has_bias else []

    @property
    def leaves(self) -> list[Path]:
        """The ways to the values that the replacement is computed from."""
        read = [way for each in (*self.behind, *self.in_front) for way in (*each.numbers, *each.factors)]
        return [self.image, self.weights, *self.bias, *read]
