"""What follows a linear op and scales or shifts every channel of its result."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.linear.facts import Facts
from mlir_sched.program.rewrites.linear.linear_op import INIT, Linear, is_copy, linear, starts_with_zeros
from mlir_sched.program.rewrites.linear.moves import factor_sizes, moved_sizes
from mlir_sched.program.rewrites.linear.step import Parts, Step, parts
from mlir_sched.program.rewrites.linear.walk import Loops, Walk

SCALES = Parts(scales=True)


@dataclass(frozen=True)
class Behind:
    """What follows a linear op, up to the last op that scales or shifts.

    Attributes:
        steps: The ops, in their order.
        loops: The loops of the linear op that their numbers, and its bias, lie along.
        has_bias: Whether the sums of the linear op start with a number for each channel, in place of zeros.
    """

    steps: tuple[Step, ...]
    loops: Loops
    has_bias: bool

    @cached_property
    def parts(self) -> Parts:
        """What the steps do to the sums without their bias."""
        return parts(self.steps, shifted=self.has_bias) or Parts()

    @property
    def is_gain(self) -> bool:
        """Whether there is less to compute once the steps are folded: they scale, or there is more than one shift."""
        return self.parts.scales or sum(step.is_affine for step in self.steps) + self.has_bias > 1


def behind(begin: Linear, facts: Facts, taken: Collection[Any]) -> Behind | None:
    """Return what follows a linear op; None where its sums start with other numbers than constants of channels.

    Args:
        begin: The linear op.
        facts: What is known of the program.
        taken: Ops at which the chain ends.
    """
    walk = Forward(begin, facts, taken)
    bias = walk.start()
    if bias is None:
        return None
    end = walk.finish()
    return Behind(tuple(walk.steps[:end]), bias.union(*walk.loops[:end]), not starts_with_zeros(begin.op))


@dataclass
class Forward(Walk):
    """The walk from a linear op on.

    Attributes:
        sizes: Sizes of all numbers so far, as factors of the result of the last op in front of a product.
    """

    is_behind = True
    sizes: list[list[int]] = field(default_factory=list)

    def start(self) -> Loops | None:
        """Return the loops of the numbers that the sums start with; None where they start with anything else."""
        op = self.begin.op
        if starts_with_zeros(op):
            return frozenset()
        copy = producer(op.operands[INIT])
        if copy is None or not is_copy(copy) or not self.facts.is_number(copy.operands[0]):
            return None
        sizes = factor_sizes(copy, 0)
        return None if sizes is None else self._takes([sizes])

    @property
    def value(self) -> Any:
        """The result of the last op."""
        return self.steps[-1].op.results[0] if self.steps else self.begin.op.results[0]

    def next_step(self) -> Step | None:
        """Return the op that alone reads the result of the last one."""
        return Step.reading(self.value)

    def goes_through(self, step: Step) -> Loops | None:
        """Go through an op: numbers are moved, and those of the op are taken."""
        if any(each.is_attention for each in self.steps):
            return None
        if step.is_move or step.multiplies:
            return frozenset() if self._is_passed_over(step) else None
        sizes = step.number_sizes(self.facts)
        if sizes is None:
            return None
        if self.is_multiplied:
            is_of_all = parts([step]) == SCALES and all(size == 1 for each in sizes for size in each)
            return frozenset() if is_of_all else None
        return self._takes(sizes)

    def _is_passed_over(self, step: Step) -> bool:
        """Say whether the chain goes through an op that moves, or multiplies by another tensor."""
        if step.is_move:
            return step.place == 0 and (self.is_multiplied or self._moves(step))
        if step.is_attention:
            return True
        is_linear = linear(step.op, self.facts.globals) is not None
        return step.place < INIT and starts_with_zeros(step.op) and not is_linear

    @property
    def is_multiplied(self) -> bool:
        """Whether another tensor multiplies: scales of all elements alike pass it, and nothing else."""
        return any(step.multiplies for step in self.steps)

    def _moves(self, step: Step) -> bool:
        """Move all numbers; return False where one of them would be none of channels, or lack some of them."""
        before = self.sizes
        moved = [moved_sizes(step.op, sizes) for sizes in before]
        self.sizes = [sizes for sizes in moved if sizes is not None]
        return [moved_sizes(step.op, sizes, back=True) for sizes in self.sizes] == before

    def _takes(self, sizes: list[list[int]]) -> Loops | None:
        """Take the sizes of numbers; return their loops, None where the weights cannot be multiplied by one of them."""
        self.sizes += sizes
        return self.loops_of(sizes)
