"""Steps with the ways to them, and sites of steps one after the other, behind a linear op or on their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from mlir_sched.program.rewrites.dag_site import DagSite, Path
from mlir_sched.program.rewrites.linear.linear_op import Linear
from mlir_sched.program.rewrites.linear.step import Step


@dataclass(frozen=True)
class PlacedStep:
    """An op of a chain, and the way to it.

    Attributes:
        step: The op.
        way: The way to the op.
    """

    step: Step
    way: Path

    @property
    def numbers(self) -> list[Path]:
        """The ways to its numbers."""
        return [(*self.way, place) for place in self.step.numbers]

    @property
    def factors(self) -> list[Path]:
        """The ways to the other operands of an op that multiplies."""
        return [(*self.way, place) for place in self.step.factors]

    @property
    def start(self) -> list[Path]:
        """The ways to ops beside it that say what it does (:attr:`Step.start`)."""
        return [(*self.way, *way) for way in self.step.start]


def placed_behind(steps: Sequence[Step]) -> list[PlacedStep]:
    """Return ops, each of which alone reads the one before, with the ways to them from the last one."""
    ways = [tuple(step.place for step in reversed(steps[number:])) for number in range(1, len(steps) + 1)]
    return list(map(PlacedStep, steps, ways))


def placed_in_front(steps: Sequence[Step], begin: Path) -> tuple[list[PlacedStep], Path]:
    """Return ops that make a value, with the ways to them, and the way to what the last one reads.

    Args:
        steps: The ops, the nearest one first.
        begin: The way to the value.
    """
    *ways, end = accumulate((step.way for step in steps), initial=begin)
    return list(map(PlacedStep, steps, ways)), end


@dataclass(frozen=True)
class BehindLinear(DagSite):
    """A linear op with what follows.

    Attributes:
        linear: The linear op.
        steps: The ops behind it, in their order.
    """

    linear: Linear
    steps: tuple[Step, ...]

    @property
    def root(self) -> Any:
        """The last op."""
        return self.steps[-1].op if self.steps else self.linear.op

    @property
    def along(self) -> Path:
        """The way to the linear op."""
        return tuple(step.place for step in reversed(self.steps))

    @property
    def behind(self) -> list[PlacedStep]:
        """The ops behind the linear op, in their order."""
        return placed_behind(self.steps)


@dataclass(frozen=True)
class Steps(DagSite):
    """Ops, each of which alone reads the one before.

    Attributes:
        steps: The ops, in their order.
    """

    steps: tuple[Step, ...]

    @property
    def root(self) -> Any:
        """The last op."""
        return self.steps[-1].op

    @property
    def along(self) -> Path:
        """The way to the first op."""
        return self.placed[0].way

    @property
    def placed(self) -> list[PlacedStep]:
        """The ops, in their order."""
        return placed_behind(self.steps)

    @property
    def ops(self) -> list[Path]:
        """The ways to all ops that a matcher compares, the last one first."""
        return [*(each.way for each in reversed(self.placed)), *(way for each in self.placed for way in each.start)]

    @property
    def leaves(self) -> list[Path]:
        """The ways to what the first op reads, and to what the ops compute with."""
        read = [way for each in self.placed for way in (*each.numbers, *each.factors)]
        return [(*self.along, self.steps[0].place), *read]
