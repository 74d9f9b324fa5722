"""A chain while it is followed from its linear op, in either direction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from mlir_sched.program.rewrites.linear.facts import Facts
from mlir_sched.program.rewrites.linear.linear_op import INIT, Linear
from mlir_sched.program.rewrites.linear.moves import moved_sizes
from mlir_sched.program.rewrites.linear.step import Step

Loops = frozenset[int | None]
"""The loops of a linear op that numbers lie along."""


@dataclass
class Walk(ABC):
    """The ops that are passed, one after the other.

    Attributes:
        is_behind: Whether they follow the linear op, or are in front of it.
        begin: The linear op.
        facts: What is known of the program.
        taken: Ops at which the chain ends.
        steps: The ops so far, the nearest one first.
        loops: The loops that the numbers of each of them lie along.
    """

    is_behind: ClassVar[bool]
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

    def loops_of(self, sizes: Sequence[list[int]]) -> Loops | None:
        """Return the loops that walk factors of what the last op makes, or reads where ops are in front.

        Args:
            sizes: The sizes of each.

        Returns:
            None where the weights cannot be multiplied by one of them.
        """
        place, factors = INIT if self.is_behind else self.begin.image, list(map(self._at_linear, sizes))
        known = [each for each in factors if each is not None and self.begin.fits(place, each)]
        if len(known) < len(factors):
            return None
        return frozenset(loop for each in known for loop in self.begin.walked(place, each))

    def _at_linear(self, sizes: list[int]) -> list[int] | None:
        """Return the sizes of a factor at the last op as one of the linear op's operand; None where it is none."""
        found: list[int] | None = sizes
        for step in reversed(self.steps):
            if found is not None and (step.is_move or step.is_padding):
                found = moved_sizes(step.op, found, back=self.is_behind)
        return found

    def _passed(self, step: Step) -> Loops | None:
        is_near = step.op not in self.taken and step.op.parent == self.begin.op.parent
        return self.goes_through(step) if is_near else None
