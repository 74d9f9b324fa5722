"""What stands in front of a linear op, and scales or shifts every channel of what the op reads."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.folding.facts import Facts
from mlir_sched.program.rewrites.folding.linear import Linear
from mlir_sched.program.rewrites.folding.moves import moved_sizes
from mlir_sched.program.rewrites.folding.step import Parts, Step, parts


@dataclass(frozen=True)
class Ahead:
    """What stands in front of a linear op, back to the first op that scales or shifts.

    Attributes:
        steps: The ops, the nearest one first.
        loops: The loops of the linear op that their numbers lie along.
    """

    steps: tuple[Step, ...] = ()
    loops: frozenset[int | None] = frozenset()

    @cached_property
    def parts(self) -> Parts:
        """What they do to each element."""
        return parts(self.steps[::-1]) or Parts()

    @property
    def operations(self) -> int:
        """How often an element is scaled or shifted."""
        return sum(step.elements for step in self.steps if step.is_affine)


def ahead(begin: Linear, facts: Facts, taken: Collection[Any]) -> Ahead:
    """Return what stands in front of a linear op, where nothing else reads it.

    Args:
        begin: The linear op.
        facts: What is known of the program.
        taken: Ops at which the chain ends.
    """
    walked = _Walked(begin, facts, taken)
    while walked.go_on():
        pass
    return Ahead(tuple(walked.steps[: walked.complete]), frozenset(walked.loops))


@dataclass
class _Walked:
    """A chain while it is followed from its linear op back.

    Attributes:
        begin, facts, taken: As the arguments of :func:`ahead`.
        steps: The ops so far.
        loops: The loops of the linear op that their numbers lie along.
        complete: How many of the steps end in one that scales or shifts.
    """

    begin: Linear
    facts: Facts
    taken: Collection[Any]
    steps: list[Step] = field(default_factory=list)
    loops: set[int | None] = field(default_factory=set)
    complete: int = 0

    def go_on(self) -> bool:
        """Take the op in front; return False where the chain ends."""
        last, place = (self.steps[-1].op, self.steps[-1].place) if self.steps else (self.begin.op, self.begin.image)
        value = last.operands[place]
        op = producer(value)
        if op is None or op in self.taken or op.parent != self.begin.op.parent or len([*value.uses]) != 1:
            return False
        varying = [place for place in range(len(op.operands)) if not self.facts.is_number(op.operands[place])]
        step = Step(op, min(varying, default=0))
        if not self._goes_through(step):
            return False
        self.steps.append(step)
        self.complete = len(self.steps) if step.is_affine else self.complete
        return True

    def _goes_through(self, step: Step) -> bool:
        """Say whether the chain goes through an op; a shift passes no padding, as zeros are not shifted there."""
        if step.is_move or step.is_padding:
            return step.place == 0
        sizes = step.number_sizes(self.facts)
        if sizes is None or (_shifts(step) and not self._takes_shifts):
            return False
        behind = [self._behind(each) for each in sizes]
        known = [each for each in behind if each is not None and self.begin.fits(self.begin.image, each)]
        if len(known) < len(sizes):
            return False
        for each in known:
            self.loops |= self.begin.walked(self.begin.image, each)
        return True

    @property
    def _takes_shifts(self) -> bool:
        """Whether every result of the linear op is the sum of all weights of its channel."""
        return self.begin.sums_weights and not any(step.is_padding for step in self.steps)

    def _behind(self, sizes: list[int]) -> list[int] | None:
        """Return the sizes of a factor in front of all ops as one of what the linear op reads."""
        found: list[int] | None = sizes
        for step in reversed(self.steps):
            found = found if step.is_affine or found is None else moved_sizes(step.op, found)
        return found


def _shifts(step: Step) -> bool:
    found = parts([step])
    return found is not None and found.shifts
