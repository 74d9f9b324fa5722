"""What follows a linear op and scales or shifts every channel of its result."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.folding.elementwise import factor_sizes
from mlir_sched.program.rewrites.folding.facts import Facts
from mlir_sched.program.rewrites.folding.linear import INIT, Linear, linear, source_loops, starts_with_zeros
from mlir_sched.program.rewrites.folding.moves import moved_sizes
from mlir_sched.program.rewrites.folding.step import Parts, Step, parts

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
    loops: frozenset[int | None]
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
    walked = _Walked(begin, facts, taken)
    if not walked.start():
        return None
    while walked.go_on():
        pass
    return Behind(tuple(walked.steps[: walked.complete]), frozenset(walked.loops), not starts_with_zeros(begin.op))


@dataclass
class _Walked:
    """A chain while it is followed from its linear op on.

    Attributes:
        begin, facts, taken: As the arguments of :func:`behind`.
        steps: The ops so far.
        sizes: Sizes of all numbers so far, as factors of the result of the last op in front of a product.
        loops: The loops of the linear op that the numbers lie along.
        complete: How many of the steps end in one that scales or shifts.
    """

    begin: Linear
    facts: Facts
    taken: Collection[Any]
    steps: list[Step] = field(default_factory=list)
    sizes: list[list[int]] = field(default_factory=list)
    loops: set[int | None] = field(default_factory=set)
    complete: int = 0

    def start(self) -> bool:
        """Read what the sums start with; return whether a chain may begin with it."""
        op = self.begin.op
        if starts_with_zeros(op):
            return True
        copy = producer(op.operands[INIT])
        if copy is None or source_loops(copy) is None or not self.facts.is_number(copy.operands[0]):
            return False
        sizes = factor_sizes(copy, 0)
        return sizes is not None and self._takes([sizes])

    def go_on(self) -> bool:
        """Take the next op; return False where the chain ends."""
        value = self.steps[-1].op.results[0] if self.steps else self.begin.op.results[0]
        uses = [*value.uses]
        if len(uses) != 1:
            return False
        step = Step(uses[0].owner.operation, uses[0].operand_number)
        if step.op in self.taken or step.op.parent != self.begin.op.parent or not self._goes_through(step):
            return False
        self.steps.append(step)
        self.complete = len(self.steps) if step.is_end else self.complete
        return True

    def _goes_through(self, step: Step) -> bool:
        """Say whether the chain goes through an op; numbers are moved, and those of the op are taken."""
        if any(each.is_attention for each in self.steps):
            return False
        if step.is_move:
            return step.place == 0 and (self._is_multiplied or self._moves(step))
        if step.is_attention:
            return True
        if step.is_product:
            is_linear = linear(step.op, self.facts.globals) is not None
            return step.place < INIT and starts_with_zeros(step.op) and not is_linear
        sizes = step.number_sizes(self.facts)
        if sizes is None:
            return False
        if self._is_multiplied:
            return parts([step]) == SCALES and all(size == 1 for each in sizes for size in each)
        return self._takes(sizes)

    @property
    def _is_multiplied(self) -> bool:
        """Whether another tensor multiplies: scales of all elements alike pass it, and nothing else."""
        return any(step.multiplies for step in self.steps)

    def _moves(self, step: Step) -> bool:
        """Move all numbers; return False where one of them would be none of channels."""
        moved = [moved_sizes(step.op, sizes) for sizes in self.sizes]
        found = [sizes for sizes in moved if sizes is not None]
        self.sizes = found
        return len(found) == len(moved)

    def _takes(self, sizes: list[list[int]]) -> bool:
        """Take the sizes of numbers; return False where the weights cannot be multiplied by one of them."""
        for each in sizes:
            begin = self._in_front(each)
            if begin is None or not self.begin.fits(INIT, begin):
                return False
            self.loops |= self.begin.walked(INIT, begin)
        self.sizes += sizes
        return True

    def _in_front(self, sizes: list[int]) -> list[int] | None:
        """Return the sizes of a factor of the last op's result as one of the linear op's result."""
        found: list[int] | None = sizes
        for step in reversed(self.steps):
            found = moved_sizes(step.op, found, back=True) if step.is_move and found is not None else found
        return found
