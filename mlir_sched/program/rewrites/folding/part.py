"""Parts of what a linear op computes, and what scales all elements of one of them alike.

Queries, keys and values are often parts of one product. The scale of the scores, behind the part with the queries, is a
factor of all channels of the product: the scale for those of the part, 1 for the others.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from iree.compiler import ir
from iree.compiler.dialects import arith

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.constant_values import scalar_constant
from mlir_sched.program.rewrites.dag_site import Path
from mlir_sched.program.rewrites.linalg_ops import numbers_of
from mlir_sched.program.rewrites.linear.affine import Affine
from mlir_sched.program.rewrites.linear.composed import Given, Numbers, composed, passed
from mlir_sched.program.rewrites.linear.placed import Steps


@dataclass(frozen=True)
class Box:
    """A part of a tensor.

    Attributes:
        offsets: Where the part begins, along every dimension.
        sizes: Its sizes.
    """

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]

    @staticmethod
    def of(part: Any) -> Box:
        """Return what an op takes of a tensor."""
        return Box(tuple(numbers_of(part, "static_offsets")), tuple(part.result.type.shape))

    @property
    def place(self) -> tuple[slice, ...]:
        """The part as an index of an array."""
        return tuple(slice(at, at + size) for at, size in zip(self.offsets, self.sizes, strict=True))

    def meets(self, other: Box) -> bool:
        """Say whether two parts have an element in common."""
        pairs = zip(self.place, other.place, strict=True)
        return all(own.start < its.stop and its.start < own.stop for own, its in pairs)


Scales = Mapping[Box, float]
"""What scales each part of a tensor; it is 1 elsewhere."""


def factor_of(shape: Sequence[int], scales: Scales) -> np.ndarray:
    """Return what scales parts of a tensor, with one element along the dimensions that no part is cut along."""
    cut = [{*sizes} != {whole} for whole, *sizes in zip(shape, *(box.sizes for box in scales), strict=True)]
    found = np.ones(shape, np.float32)
    for box, scale in scales.items():
        found[box.place] *= scale
    return found[tuple(slice(None) if is_cut else slice(1) for is_cut in cut)]


@dataclass(frozen=True)
class Part(Steps):
    """An op that takes a part of a tensor, and what follows up to the last op that scales all of its elements alike.

    Attributes:
        scales: What scales the parts of the whole.
    """

    scales: tuple[tuple[Box, float], ...] = ()

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key, equal for parts that the same matcher finds, and that the same replacement is right for."""
        return *super().kind, self.scales

    @property
    def whole(self) -> Path:
        """The way to the whole."""
        return *self.along, 0

    @property
    def box(self) -> Box:
        """The part."""
        return Box.of(self.steps[0].op)

    @property
    def scale(self) -> float | None:
        """What the ops scale all elements by, 1 where they do not; None where that is not known."""
        scratch = ir.Module.create()
        with ir.InsertionPoint(scratch.body):
            form = composed(self.placed, Affine(), ())
            return 1.0 if form.scale is None else _computed(form.scale)

    def scaled(self, given: Given) -> Given:
        """Return the whole with all of its parts scaled, given the values that the leaves lead to."""
        whole = given[self.whole]
        factor = factor_of(whole.type.shape, dict(self.scales))
        dims = [dim for dim, size in enumerate(factor.shape) if size > 1]
        kind = ir.RankedTensorType.get([factor.shape[dim] for dim in dims], ir.F32Type.get())
        scale = arith.constant(kind, ir.DenseElementsAttr.get(np.ascontiguousarray(factor.reshape(kind.shape))))
        return {self.whole: Numbers(tuple(dims), factor.shape, scale, None).applied(whole, scale=scale)}

    def replacement(self, given: Given) -> Any:
        """Return the result from the scaled whole, and from the other values that the leaves lead to."""
        return passed(self.placed, given[self.whole], given)


def _computed(value: Any) -> float | None:
    """Return what ops make of constants; None where that is not known."""
    op = producer(value)
    if op.name not in _SCALAR_OPS:
        return scalar_constant(value)
    operands = [_computed(operand) for operand in op.operands]
    known = [np.float32(each) for each in operands if each is not None]
    return float(_SCALAR_OPS[op.name](*known)) if len(known) == len(operands) else None


_SCALAR_OPS: Mapping[str, Callable[..., Any]] = {
    "arith.addf": operator.add,
    "arith.divf": operator.truediv,
    "arith.mulf": operator.mul,
    "arith.negf": operator.neg,
    "arith.subf": operator.sub,
}
