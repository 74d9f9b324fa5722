"""Ops that move data: transposes, reshapes, slices, joins and padding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import tensor

from mlir_sched.payload import PAD
from mlir_sched.program.rewrites.layout.channel_dims import Form, reshaped_groups
from mlir_sched.program.rewrites.layout.rules.rule import Axes, Orders, Rule, in_order
from mlir_sched.program.rewrites.linalg_ops import (
    COLLAPSE,
    CONCAT,
    EXPAND,
    SLICE,
    TRANSPOSE,
    collapse,
    dim_of,
    expand,
    groups_of,
    numbers_of,
    region_of,
    transposed,
)
from mlir_sched.program.rewrites.padding.tensor_pad import number_around, sides_of, surrounded_alike


class Transpositions(Rule):
    """``linalg.transpose``."""

    names = (TRANSPOSE,)
    effect = "moves channels: a transpose of what lies in memory, or nothing"
    form = Form.ANY
    reads = 1

    def axes(self, op: Any) -> list[Axes]:
        """Return the dims of the source."""
        moved = numbers_of(op, "permutation")
        return [range(len(moved)), moved]

    def build(self, op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
        """Return the source with its dims in the order of the result."""
        moved, before = numbers_of(op, "permutation"), orders(op.operands[0])
        return transposed(inputs[0], [before.index(moved[dim]) for dim in orders(op.result)])


class Reshapes(Rule):
    """``tensor.expand_shape`` and ``tensor.collapse_shape``."""

    names = (EXPAND, COLLAPSE)
    effect = "splits channels, or joins them, where nothing else is split or joined with them"
    form = Form.GROUPED

    def axes(self, op: Any) -> list[Axes]:
        """Return the dims of the shorter shape."""
        groups = groups_of(op)
        longer = [number for number, group in enumerate(groups) for _ in group]
        axes: list[Axes] = [longer, range(len(groups))]
        return axes if op.name == COLLAPSE else axes[::-1]

    def build(self, op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
        """Return the source reshaped as it lies in memory."""
        values = (op.operands[0], op.result)
        shapes = [tuple(value.type.shape) for value in values]
        groups = reshaped_groups(shapes, tuple(map(tuple, self.axes(op))), [orders(value) for value in values])
        assert groups is not None
        if op.name == COLLAPSE:
            return collapse(inputs[0], groups)
        return expand(inputs[0], groups, in_order(shapes[1], orders(op.result)))


class Slices(Rule):
    """``tensor.extract_slice`` that keeps the number of dims."""

    names = (SLICE,)
    effect = "keeps channels, or some of them"

    def fits(self, op: Any) -> bool:
        """Say whether the number of dims stays."""
        return bool(op.operands[0].type.rank == op.result.type.rank)

    def build(self, op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
        """Return the part."""
        order = orders(op.result)
        part = [in_order(each, order) for each in region_of(op)]
        kind = ir.RankedTensorType.get(part[1], op.result.type.element_type)
        return tensor.extract_slice(kind, inputs[0], [], [], [], *part)


class Joins(Rule):
    """``tensor.concat``."""

    names = (CONCAT,)
    effect = "joins channels, or pixels"

    def build(self, op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
        """Return the joined values."""
        order, kind = orders(op.result), op.result.type
        result = ir.RankedTensorType.get(in_order(kind.shape, order), kind.element_type)
        return tensor.concat(result, order.index(dim_of(op)), list(inputs))


def begun_by(op: Any, joins: Iterable[Any]) -> Any | None:
    """Return the join that joins most of an op's first operands, and nothing else; None where no join does."""

    def begins(join: Any) -> bool:
        same = list(op.operands)[: len(join.operands)] == list(join.operands)
        return same and len(join.operands) < len(op.operands) and dim_of(join) == dim_of(op)

    return max(filter(begins, joins), key=lambda join: len(join.operands), default=None)


class Paddings(Rule):
    """``tensor.pad`` with one number."""

    names = (PAD,)
    effect = "keeps channels; surrounds them with a number"

    def fits(self, op: Any) -> bool:
        """Say whether a tensor is surrounded by a known number."""
        return bool(number_around(op))

    def build(self, op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
        """Return the padded value."""
        low, high = (in_order(side, orders(op.result)) for side in sides_of(op))
        return surrounded_alike(inputs[0], low, high, op)
