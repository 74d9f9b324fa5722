"""What stands in front of a linear op, and scales or shifts every channel of what the op reads."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlir_sched.compiler.operations import only_use, producer
from mlir_sched.program.rewrites.linear.facts import Facts
from mlir_sched.program.rewrites.linear.linear_op import Linear
from mlir_sched.program.rewrites.linear.step import Parts, Step, parts
from mlir_sched.program.rewrites.linear.walk import Loops, Walk


@dataclass(frozen=True)
class Ahead:
    """What stands in front of a linear op, back to the first op that scales or shifts.

    Attributes:
        steps: The ops, the nearest one first.
        loops: The loops of the linear op that the numbers of each lie along.
    """

    steps: tuple[Step, ...] = ()
    loops: tuple[Loops, ...] = ()

    @cached_property
    def parts(self) -> Parts:
        """What they do to each element."""
        return parts(self.steps[::-1]) or Parts()

    @property
    def is_shared(self) -> bool:
        """Whether one of them has several readers."""
        return not all(only_use(step.op.results[0]) for step in self.steps)

    def first(self, number: int) -> Ahead:
        """Return the nearest ops, up to the last one of them that scales or shifts."""
        end = max((place for place, step in enumerate(self.steps[:number], 1) if step.is_affine), default=0)
        return Ahead(self.steps[:end], self.loops[:end])


def ahead(begin: Linear, facts: Facts, taken: Collection[Any]) -> Ahead:
    """Return what stands in front of a linear op; others may read it, too.

    Args:
        begin: The linear op.
        facts: What is known of the program.
        taken: Ops at which the chain ends.
    """
    walk = Back(begin, facts, taken)
    end = walk.finish()
    return Ahead(tuple(walk.steps[:end]), tuple(walk.loops[:end]))


class Back(Walk):
    """The walk from a linear op back."""

    is_behind = False

    def next_step(self) -> Step | None:
        """Return the op that makes what the last one reads."""
        op = producer(self.steps[-1].read if self.steps else self.begin.op.operands[self.begin.image])
        if op is None:
            return None
        varying = [place for place in range(len(op.operands)) if not self.facts.is_number(op.operands[place])]
        return Step(op, min(varying, default=0))

    def goes_through(self, step: Step) -> Loops | None:
        """Go through what moves, and what scales; a shift passes no padding, as zeros are not shifted there."""
        if step.is_move or step.is_padding:
            return frozenset() if step.place == 0 else None
        sizes = step.number_sizes(self.facts)
        if sizes is None or (Ahead((step,)).parts.shifts and not self.takes_shifts):
            return None
        return self.loops_of(sizes)

    @property
    def takes_shifts(self) -> bool:
        """Whether every result of the linear op is the sum of all weights of its channel."""
        return self.begin.sums_weights and not any(step.is_padding for step in self.steps)
