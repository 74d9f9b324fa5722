"""Products of a part of a sequence with weights that all parts share."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from iree.compiler import ir

from mlir_sched.program.rewrites.constant_values import constant_key
from mlir_sched.program.rewrites.dag_site import Path
from mlir_sched.program.rewrites.linalg_ops import numbers_of
from mlir_sched.program.rewrites.linear.linear_op import INIT
from mlir_sched.program.rewrites.linear.placed import BehindLinear
from mlir_sched.program.rewrites.site_rewrite import OpSite


@dataclass(frozen=True)
class StepProduct(BehindLinear):
    """A linear op over a slice of a sequence.

    The slice takes some of the sequence's rows, which lie along its first dimensions, and all of its other dimensions.

    Attributes:
        linear: The linear op.
        steps: Element-wise ops behind it, in their order, whose other operands are constants and the same for all rows.
        before: What makes its image, from the linear op back: reshapes, then the slice.
    """

    before: tuple[Any, ...]

    @property
    def ops(self) -> list[Path]:
        """The ways to all ops that a matcher compares, the last op first."""
        steps = [self.along[:number] for number in range(len(self.along) + 1)]
        before = [(*self._image, *[0] * number) for number in range(len(self.before))]
        return [*steps, *before, (*self.along, INIT), (*self.along, INIT, 0)]

    @property
    def leaves(self) -> list[Path]:
        """The ways to the values that the replacement is computed from."""
        numbers = [way for each in self.behind for way in each.numbers]
        return [self.sequence_way, *self.varying, self.weights, *numbers]

    @property
    def sequence_way(self) -> Path:
        """The way to the sequence."""
        return *self._image, *[0] * len(self.before)

    @property
    def varying(self) -> list[Path]:
        """The ways to the offsets of the slice that are no constants."""
        slice_ = self.sequence_way[:-1]
        return [(*slice_, place) for place in range(1, len(self.slice.operands))]

    @property
    def weights(self) -> Path:
        """The way to the weights."""
        return *self.along, self.linear.weights

    @property
    def slice(self) -> Any:
        """The slice."""
        return self.before[-1]

    @property
    def sequence(self) -> Any:
        """What is sliced."""
        return self.slice.operands[0]

    @property
    def offsets(self) -> list[Any]:
        """The offsets of the slice along the dimensions of the rows: numbers, or values of the program."""
        varying, unknown = iter(list(self.slice.operands)[1:]), ir.ShapedType.get_dynamic_stride_or_offset()
        static = numbers_of(self.slice, "static_offsets")
        return [next(varying) if offset == unknown else offset for offset in static][: self.lead]

    @property
    def taken(self) -> list[int]:
        """The sizes of the slice along the dimensions of the rows."""
        return numbers_of(self.slice, "static_sizes")[: self.lead]

    @property
    def order(self) -> list[int]:
        """The order of the dimensions of the rows in which those of one step lie side by side, if there is one.

        Dimensions that the slice takes one element of come first. In a loop, which has one slice, they stay in order.
        """
        dims = range(self.lead)
        parts = [dim for dim in dims if self.taken[dim] < self.sequence.type.shape[dim]]
        if self.varying or any(self.taken[dim] > 1 for dim in parts):
            return [*dims]
        return [*parts, *(dim for dim in dims if dim not in parts)]

    @property
    def is_contiguous(self) -> bool:
        """Whether the rows of the slice lie side by side in this order."""
        taken, shape = ([sizes[dim] for dim in self.order] for sizes in (self.taken, self.sequence.type.shape))
        parts = [dim for dim in range(self.lead) if taken[dim] < shape[dim]]
        return prod(taken[: max(parts, default=0)]) == 1

    @property
    def lead(self) -> int:
        """How many dimensions of the sequence the rows lie along."""
        image = self.linear.op.operands[self.linear.image]
        return int(self.sequence.type.rank - image.type.rank + 1)

    @property
    def rows(self) -> int:
        """The rows of the product."""
        return int(self.linear.op.results[0].type.shape[0])

    @property
    def all_rows(self) -> int:
        """The rows of the sequence."""
        return prod(self.sequence.type.shape[: self.lead])

    @property
    def whole(self) -> tuple[Any, ...]:
        """A key, equal for products of the same sequence that one product of all its rows computes."""
        numbers = [constant_key(step.op.operands[place]) for step in self.steps for place in step.numbers]
        weights = constant_key(self.linear.op.operands[self.linear.weights])
        forms = (OpSite(op).form for op in (self.linear.op, *(step.op for step in self.steps)))
        return self.sequence, *self.order, weights, self.along, *forms, *numbers

    @property
    def _image(self) -> Path:
        """The way to the operand of the linear op that is not constant."""
        return *self.along, self.linear.image
