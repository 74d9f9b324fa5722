"""Steps with the ways to them, and sites that are nothing but steps one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_sched.program.rewrites.dag_site import DagSite, Path
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
        return tuple(step.place for step in reversed(self.steps[1:]))

    @property
    def placed(self) -> list[PlacedStep]:
        """The ops, in their order."""
        ways = [self.along[:number] for number in reversed(range(len(self.steps)))]
        return list(map(PlacedStep, self.steps, ways))

    @property
    def ops(self) -> list[Path]:
        """The ways to all ops that a matcher compares, the last one first."""
        return [*(each.way for each in reversed(self.placed)), *(way for each in self.placed for way in each.start)]

    @property
    def leaves(self) -> list[Path]:
        """The ways to what the first op reads, and to what the ops compute with."""
        read = [way for each in self.placed for way in (*each.numbers, *each.factors)]
        return [(*self.along, self.steps[0].place), *read]
