"""Ops that move data: transposes, reshapes, slices, joins and padding."""

from collections.abc import Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import tensor

from mlir_sched.program.rewrites.layout.channel_dims import Axes, reshaped_groups
from mlir_sched.program.rewrites.layout.rules.rule import Orders, in_order
from mlir_sched.program.rewrites.linalg_ops import (
    COLLAPSE,
    collapse,
    concatenated,
    dim_of,
    expand,
    groups_of,
    numbers_of,
    region_of,
    transposed,
)
from mlir_sched.program.rewrites.padding.tensor_pad import sides_of, surrounded_alike


def permuted(op: Any) -> Sequence[Axes]:
    """Return the dims of the source, for a transpose; what it writes to has none."""
    moved = numbers_of(op, "permutation")
    return [range(len(moved)), [None for _ in moved], moved]


def turned(op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
    """Return the source of a transpose with its dims in the order of the result."""
    moved, before = numbers_of(op, "permutation"), orders(op.operands[0])
    return transposed(inputs[0], [before.index(moved[dim]) for dim in orders(op.result)])


def groups(op: Any) -> Sequence[Axes]:
    """Return the dims of the shorter shape, for a reshape."""
    shorter = groups_of(op)
    longer = [number for number, group in enumerate(shorter) for _ in group]
    return [longer, range(len(shorter))] if op.name == COLLAPSE else [range(len(shorter)), longer]


def reshaped(op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
    """Return the source of a reshape, reshaped as it lies in memory."""
    values = [op.operands[0], op.result]
    adjacent = reshaped_groups([value.type.shape for value in values], groups(op), list(map(orders, values)))
    if op.name == COLLAPSE:
        return collapse(inputs[0], adjacent)
    return expand(inputs[0], adjacent, in_order(op.result.type.shape, orders(op.result)))


def keeps_rank(op: Any) -> bool:
    """Say whether a slice has all dims."""
    return bool(op.operands[0].type.rank == op.result.type.rank)


def sliced(op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
    """Return a part of what is sliced."""
    part = [in_order(each, orders(op.result)) for each in region_of(op)]
    kind = ir.RankedTensorType.get(part[1], op.result.type.element_type)
    return tensor.extract_slice(kind, inputs[0], [], [], [], *part)


def joined(op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
    """Return joined values."""
    return concatenated(inputs, orders(op.result).index(dim_of(op)))


def padded(op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
    """Return a padded value."""
    low, high = (in_order(side, orders(op.result)) for side in sides_of(op))
    return surrounded_alike(inputs[0], low, high, op)
