"""Ops that move data: transposes, reshapes, slices, joins and padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import tensor

from mlir_sched.payload import PAD
from mlir_sched.program.rewrites.convolution_ops import is_static_f32
from mlir_sched.program.rewrites.layout.channel_dims import Form, reshaped_groups
from mlir_sched.program.rewrites.layout.rule import Axes, Orders, Rule, in_order
from mlir_sched.program.rewrites.linalg_ops import COLLAPSE, CONCAT, EXPAND, SLICE, collapse, expand, transposed
from mlir_sched.program.rewrites.padding.separate import NumberedSite
from mlir_sched.program.rewrites.padding.tensor_pad import number_around, only_pad, sides_of, surrounded_alike
from mlir_sched.program.rewrites.replacement import match_type, operand_of

TRANSPOSE = "linalg.transpose"


class Transpositions(Rule):
    """``linalg.transpose``."""

    names = (TRANSPOSE,)
    effect = "moves channels: a transpose of what lies in memory, or nothing"
    form = Form.ANY

    def fits(self, op: Any) -> bool:
        """Say whether all sizes are known."""
        return bool(op.result.type.has_static_shape)

    def axes(self, op: Any) -> list[Axes]:
        """Return the dims of the source."""
        moved = _numbers(op, "permutation")
        return [range(len(moved)), moved]

    def inputs(self, op: Any) -> list[Any]:
        """Return the source."""
        return [op.operands[0]]

    def handles(self, handle: Any, op: Any) -> list[Any]:
        """Emit a handle on the source."""
        return super().handles(handle, op)[:1]

    def build(self, op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
        """Return the source with its dims in the order of the result."""
        moved, before = _numbers(op, "permutation"), orders(op.operands[0])
        return transposed(inputs[0], [before.index(moved[dim]) for dim in orders(op.result)])


class Reshapes(Rule):
    """``tensor.expand_shape`` and ``tensor.collapse_shape``."""

    names = (EXPAND, COLLAPSE)
    effect = "splits channels, or joins them, where nothing else is split or joined with them"
    form = Form.GROUPED

    def fits(self, op: Any) -> bool:
        """Say whether all sizes are known."""
        return len(op.operands) == 1 and all(value.type.has_static_shape for value in (op.operands[0], op.result))

    def axes(self, op: Any) -> list[Axes]:
        """Return the dims of the shorter shape."""
        groups = [[ir.IntegerAttr(dim).value for dim in group] for group in op.attributes["reassociation"]]
        longer = [number for number, group in enumerate(groups) for _ in group]
        axes: list[Axes] = [longer, range(len(groups))]
        return axes if op.name == COLLAPSE else axes[::-1]

    def build(self, op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
        """Return the source reshaped as it lies in memory."""
        source, result = op.operands[0], op.result
        shapes = [tuple(value.type.shape) for value in (source, result)]
        groups = reshaped_groups(shapes, tuple(map(tuple, self.axes(op))), [orders(source), orders(result)])
        assert groups is not None
        if op.name == COLLAPSE:
            return collapse(inputs[0], groups)
        return expand(inputs[0], groups, in_order(shapes[1], orders(result)))


class Slices(Rule):
    """``tensor.extract_slice`` that keeps the number of dims."""

    names = (SLICE,)
    effect = "keeps channels, or some of them"

    def fits(self, op: Any) -> bool:
        """Say whether offsets, sizes and strides are known."""
        return len(op.operands) == 1 and list(op.result.type.shape) == _numbers(op, "static_sizes")

    def build(self, op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
        """Return the part."""
        order = orders(op.result)
        offsets, sizes, strides = (
            in_order(_numbers(op, f"static_{name}"), order) for name in ("offsets", "sizes", "strides")
        )
        kind = ir.RankedTensorType.get(sizes, op.result.type.element_type)
        return tensor.extract_slice(kind, inputs[0], [], [], [], offsets, sizes, strides)


class Joins(Rule):
    """``tensor.concat``.

    Where other ops join the first of its operands, too, as where every layer reads what all layers before it made,
    these are joined first: the same join of several ops is made once.
    """

    names = (CONCAT,)
    effect = "joins channels, or pixels"

    def fits(self, op: Any) -> bool:
        """Say whether all sizes are known."""
        return all(map(is_static_f32, op.operands))

    def kind(self, op: Any) -> tuple[Any, ...]:
        """Return also how many operands are joined first."""
        return *super().kind(op), *map(len, _joined_first(op))

    def build(self, op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
        """Return the joined values."""
        dim = orders(op.result).index(ir.IntegerAttr(op.attributes["dim"]).value)
        joined, done = inputs[0], 1
        for first in (*_joined_first(op), op.operands):
            joined, done = _concat([joined, *inputs[done : len(first)]], dim), len(first)
        return joined


def _concat(values: Sequence[Any], dim: int) -> Any:
    """Return values joined along a dim."""
    shape = list(values[0].type.shape)
    shape[dim] = sum(value.type.shape[dim] for value in values)
    return tensor.concat(ir.RankedTensorType.get(shape, values[0].type.element_type), dim, list(values))


def _joined_first(op: Any) -> list[list[Any]]:
    """Return the operands of other ops that join the first operands of an op in the same way, the fewest first."""
    operands = list(op.operands)
    beside = (use.owner.operation for use in operands[0].uses)
    others = [
        list(other.operands)
        for other in beside
        if other.name == CONCAT and other.attributes["dim"] == op.attributes["dim"]
    ]
    shorter = {len(other) for other in others if len(other) < len(operands) and other == operands[: len(other)]}
    return [operands[:count] for count in sorted(shorter)]


class Paddings(Rule):
    """``tensor.pad`` with one number."""

    names = (PAD,)
    effect = "keeps channels; surrounds them with a number"

    def fits(self, op: Any) -> bool:
        """Say whether a static tensor is surrounded by a known number."""
        return bool(number_around(op))

    def kind(self, op: Any) -> tuple[Any, ...]:
        """Return types, widths and number."""
        return NumberedSite(op).kind

    def match(self, root: Any, op: Any) -> None:
        """Emit the comparison of type, widths and number."""
        match_type(operand_of(only_pad(root, op), 0), op.operands[0].type)

    def build(self, op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
        """Return the padded value."""
        low, high = (in_order(side, orders(op.result)) for side in sides_of(op))
        return surrounded_alike(inputs[0], low, high, op)


def _numbers(op: Any, name: str) -> list[int]:
    return list(ir.DenseI64ArrayAttr(op.attributes[name]))
