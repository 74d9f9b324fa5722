"""The ops of a chain, each with the operand that the chain goes through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import tensor

from mlir_sched.compiler.operations import captured, only_use, producer
from mlir_sched.program.rewrites.attention.ops import ATTENTION
from mlir_sched.program.rewrites.constant_values import scalar_constant
from mlir_sched.program.rewrites.linalg_ops import copied, is_elementwise, resized
from mlir_sched.program.rewrites.linear.affine import Affine, Make, applied, emitted, noted, product
from mlir_sched.program.rewrites.linear.facts import Facts
from mlir_sched.program.rewrites.linear.linear_op import INIT, multiplies_and_adds
from mlir_sched.program.rewrites.linear.moves import factor_sizes, is_move, is_rotation, rotated
from mlir_sched.program.rewrites.padding.tensor_pad import pads_with_zeros

QUERIES, SCALE = 0, 3
"""Which operands of an attention the queries, and the scale of the scores, are."""


@dataclass(frozen=True)
class Step:
    """An op of a chain.

    Attributes:
        op: The op.
        place: Which of its operands the chain goes through.
    """

    op: Any
    place: int

    @staticmethod
    def reading(value: Any) -> Step | None:
        """Return the op that alone reads a value; None where several do, or none."""
        use = only_use(value)
        return None if use is None else Step(use.owner.operation, use.operand_number)

    @cached_property
    def is_move(self) -> bool:
        """Whether the op only moves elements."""
        return is_move(self.op)

    @cached_property
    def is_padding(self) -> bool:
        """Whether the op surrounds a tensor with zeros."""
        return pads_with_zeros(self.op)

    @cached_property
    def is_product(self) -> bool:
        """Whether the op adds products with the elements of another tensor."""
        return multiplies_and_adds(self.op)

    @cached_property
    def is_attention(self) -> bool:
        """Whether the op is an attention over queries of the chain, whose scores are scaled by a constant."""
        if self.op.name != ATTENTION or self.place != QUERIES or captured(self.op):
            return False
        scale = self.op.operands[SCALE]
        return isinstance(scale.type, ir.F32Type) and scalar_constant(scale) not in (None, 1.0)

    @property
    def multiplies(self) -> bool:
        """Whether the op multiplies by another tensor; a scale of all elements alike may come before that."""
        return self.is_product or self.is_attention

    @cached_property
    def is_affine(self) -> bool:
        """Whether the op scales or shifts each element, and does nothing else."""
        return not (self.is_move or self.is_padding or self.multiplies)

    @property
    def is_end(self) -> bool:
        """Whether a chain may end with the op."""
        return self.is_affine or self.is_attention

    @property
    def numbers(self) -> list[int]:
        """Its operands that scale or shift."""
        return [place for place in range(len(self.op.operands) - 1) if place != self.place] if self.is_affine else []

    @property
    def factors(self) -> list[int]:
        """The other operands of an op that multiplies, without the scale of scores."""
        places = range(len(self.op.operands)) if self.multiplies else ()
        return [place for place in places if place != self.place and not (self.is_attention and place == SCALE)]

    @property
    def start(self) -> list[tuple[int, ...]]:
        """The ways from the op to others that say what it does: to those that make zeros, parts, or the scale."""
        if is_rotation(self.op):
            made = enumerate(rotated(self.op))
            return [way for place, (_, cast) in made for way in ((place,), *([] if cast is None else [(place, 0)]))]
        return [(INIT,), (INIT, 0)] if self.is_product else [(SCALE,)] if self.is_attention else []

    @property
    def way(self) -> tuple[int, ...]:
        """The way from the op to what the chain goes through."""
        if not is_rotation(self.op):
            return (self.place,)
        _, cast = rotated(self.op)[self.place]
        return (self.place, 0) if cast is None else (self.place, 0, 0)

    @property
    def read(self) -> Any:
        """What the chain goes through."""
        return (rotated(self.op)[self.place][0] if is_rotation(self.op) else self.op).operands[self.way[-1]]

    @property
    def readers(self) -> list[Any]:
        """The ops that read it: the op itself, or those that take parts."""
        return [part for part, _ in rotated(self.op)] if is_rotation(self.op) else [self.op]

    @property
    def elements(self) -> int:
        """Number of elements of its result."""
        return prod(self.op.results[0].type.shape)

    def applied(self, form: Affine, numbers: Mapping[int, Any], make: Make = emitted) -> Affine | None:
        """Return what the op does to a number.

        Args:
            form: The number.
            numbers: What stands for the op's numbers, by their places.
            make: Makes scalars.

        Returns:
            None where the result is no affine function of the number.
        """
        if self.is_attention:
            return product(make, form, make(lambda: copied(producer(self.op.operands[SCALE]), []).result))
        return applied(self.op, self.place, form, numbers, make) if self.is_affine else form

    def repeated(self, value: Any, numbers: Mapping[int, Any]) -> Any:
        """Return what an element-wise op makes of another tensor, whose sizes may be others.

        Args:
            value: The tensor.
            numbers: The op's numbers for that, by their places.
        """
        operands = {**numbers, self.place: value}
        empty = tensor.empty(value.type.shape, value.type.element_type)
        return resized(self.op, [*(operands[place] for place in sorted(operands)), empty])

    def number_sizes(self, facts: Facts) -> list[list[int]] | None:
        """Return the sizes of its numbers as factors of its result (:mod:`.moves`).

        Returns:
            None where the op does anything else than to scale or shift each element, by constants that a matcher sees.
        """
        if not is_elementwise(self.op) or not _can_be_matched(self.op):
            return None
        kind = self.op.results[0].type
        if self.op.operands[self.place].type != kind or factor_sizes(self.op, self.place) != list(kind.shape):
            return None
        if parts([self]) is None or not all(facts.is_number(self.op.operands[place]) for place in self.numbers):
            return None
        sizes = [factor_sizes(self.op, place) for place in self.numbers]
        known = [each for each in sizes if each is not None]
        return known if len(known) == len(sizes) else None


class Parts(NamedTuple):
    """What a chain does to each element.

    Attributes:
        scales: Whether the element is multiplied.
        shifts: Whether something is added.
    """

    scales: bool = False
    shifts: bool = False


def parts(steps: Sequence[Step], *, shifted: bool = False) -> Parts | None:
    """Return what steps do to a number, or to one that is shifted already; None if they are not affine."""
    form: Affine | None = Affine(shift=True if shifted else None)
    for step in steps:
        form = form and step.applied(form, dict.fromkeys(step.numbers, True), noted)
    return None if form is None else Parts(form.scale is not None, form.shift is not None)


def _can_be_matched(op: Any) -> bool:
    """Say whether a matcher compares the op's body: one that uses constants from outside reads each element once."""
    return not captured(op) or all(len([*argument.uses]) <= 1 for argument in op.regions[0].blocks[0].arguments)
