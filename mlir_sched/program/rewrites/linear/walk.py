"""A chain while it is followed from its linear op, in either direction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlir_sched.program.rewrites.linear.facts import Facts
from mlir_sched.program.rewrites.linear.linear_op import Linear
from mlir_sched.program.rewrites.linear.step import Step

Loops = frozenset[int | None]
"""The loops of a linear op that numbers lie along."""


@dataclass
class Walk(ABC):
    """The ops that are passed, one after the other.

    Attributes:
        begin: The linear op.
        facts: What is known of the program.
        taken: Ops at which the chain ends.
        steps: The ops so far, the nearest one first.
        loops: The loops that the numbers of each of them lie along.
    """

    begin: Linear
    facts: Facts
    taken: Collection[Any]
    steps: list[Step] = field(default_factory=list)
    loops: list[Loops] = field(default_factory=list)

    def finish(self) -> int:
        """Go on until the chain ends; return how many of the ops end in one that a chain may end with."""
        complete = 0
        while (step := self.next_step()) and (loops := self._passed(step)) is not None:
            self.steps.append(step)
            self.loops.append(loops)
            complete = len(self.steps) if step.is_end else complete
        return complete

    @abstractmethod
    def next_step(self) -> Step | None:
        """Return the op next to the last one; None where no single op is."""

    @abstractmethod
    def goes_through(self, step: Step) -> Loops | None:
        """Return the loops that the numbers of the next op lie along; None where the chain does not go through it."""

    def loops_along(self, place: int, factors: Sequence[Sequence[int] | None]) -> Loops | None:
        """Return the loops that walk factors of an operand of the linear op.

        Args:
            place: Which operand.
            factors: The sizes of each; None for what is no factor.

        Returns:
            None where the weights cannot be multiplied by one of them.
        """
        known = [sizes for sizes in factors if sizes is not None and self.begin.fits(place, sizes)]
        if len(known) < len(factors):
            return None
        return frozenset(loop for sizes in known for loop in self.begin.walked(place, sizes))

    def _passed(self, step: Step) -> Loops | None:
        is_near = step.op not in self.taken and step.op.parent == self.begin.op.parent
        return self.goes_through(step) if is_near else None
