"""Programs as plain data, as far as layouts go, and which dims of their values are channels.

A dim of a value is a channel where a convolution or a pooling says so, or where an op links the dim to one of another
value. A value's *order* is how its dims lie in memory with channels last: all others first, both in the model's order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

Dims = frozenset[int]
Order = tuple[int, ...]


class Form(Enum):
    """For which orders of its values an op can be computed."""

    ANY = "any"
    """For all: loops are reordered."""
    SAME = "same"
    """If all of its values with channels have the same order."""
    GROUPED = "grouped"
    """If the dims that are merged into one, or split from it, are adjacent in the order."""


@dataclass(frozen=True)
class Value:
    """A tensor.

    Attributes:
        shape: Its sizes.
        bytes: What a transposed copy of it moves, in bytes; 0 for what is computed before any call.
    """

    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True)
class Op:
    """An op.

    Attributes:
        reads: The values that it reads.
        makes: The values that it makes.
        form: For which orders it can be computed; None where only in the model's layout.
        axes: Per value, those that are read first, and dim the axis of the op that the dim runs along; dims of one axis
            are linked. None for a dim that is linked to none, and for every dim of a value whose layout is not the
            program's, such as filters.
        channels: The axes that are channels, if the op itself says so: it is computed channels last if that is
            possible.
    """

    reads: tuple[Hashable, ...]
    makes: tuple[Hashable, ...]
    form: Form | None = None
    axes: tuple[tuple[int | None, ...], ...] = ()
    channels: Dims = frozenset()

    @cached_property
    def tied(self) -> list[tuple[Hashable, tuple[int | None, ...]]]:
        """The values that have dims of its axes, with the axes of their dims."""
        pairs = zip((*self.reads, *self.makes), self.axes, strict=True)
        return [(value, axes) for value, axes in pairs if any(axis is not None for axis in axes)]


@dataclass(frozen=True)
class Program:
    """Values and ops.

    Attributes:
        values: The values, by a key; one that no op makes comes from outside.
        ops: The ops, by a key, in the program's order; what leaves the program is read by an op without a form.
    """

    values: Mapping[Any, Value]
    ops: Mapping[Any, Op]


def order_of(rank: int, channels: Dims) -> Order:
    """Return the order of a value's dims in memory with channels last."""
    return (*(dim for dim in range(rank) if dim not in channels), *sorted(channels))


def moved_bytes(value: Value, channels: Dims) -> int:
    """Return what a copy from one layout into the other moves; 0 where only dims of size 1 change their places."""
    large = [dim for dim in order_of(len(value.shape), channels) if value.shape[dim] != 1]
    return value.bytes if large != sorted(large) else 0


def channel_dims(program: Program) -> Mapping[Hashable, Dims]:
    """Return the dims that are channels, of the values for which they are known.

    What is nearest to a convolution counts where ops disagree.
    """
    ops = [op for op in program.ops.values() if op.form is not None]
    known = {value: dims for op in ops if op.channels for value, dims in _linked(program, op, op.channels)}
    around: dict[Hashable, list[Op]] = {}
    for op in ops:
        for value, _ in op.tied:
            around.setdefault(value, []).append(op)
    waiting = deque(known)
    while waiting:
        for op in around.get(waiting.popleft(), ()):
            new = {value: dims for value, dims in linked_dims(program, op, known).items() if value not in known}
            known |= new
            waiting += new
    return known


def linked_dims(program: Program, op: Op, known: Mapping[Hashable, Dims]) -> Mapping[Hashable, Dims]:
    """Return the channels of all values of an op, from those that are known; none where these do not fit together."""
    given = [axes[dim] for value, axes in op.tied for dim in known.get(value, ())]
    found = dict(_linked(program, op, op.channels.union(axis for axis in given if axis is not None)))
    other = ((value, dim) for value, dims in found.items() for dim in dims ^ known.get(value, dims))
    fit = all(program.values[value].shape[dim] == 1 for value, dim in other)
    return {value: known.get(value, dims) for value, dims in found.items()} if fit else {}


def orders_last(program: Program, op: Op, known: Mapping[Hashable, Dims]) -> dict[Hashable, Order]:
    """Return the orders of an op's values if it can be computed with them channels last; else none."""
    if op.form is None or any(value not in known for value, _ in op.tied) or not linked_dims(program, op, known):
        return {}
    shapes = [program.values[value].shape for value, _ in op.tied]
    orders = [order_of(len(shape), known[value]) for (value, _), shape in zip(op.tied, shapes, strict=True)]
    fit = op.form is Form.ANY or len(set(orders)) == 1
    if op.form is Form.GROUPED:
        fit = reshaped_groups(shapes, op.axes, orders) is not None
    return {value: order for (value, _), order in zip(op.tied, orders, strict=True) if fit}


def reshaped_groups(
    shapes: list[tuple[int, ...]], axes: tuple[tuple[int | None, ...], ...], orders: list[Order]
) -> list[list[int]] | None:
    """Return which adjacent dims of the longer shape, as it lies in memory, are one dim of the shorter.

    Args:
        shapes: Those of the source and the result of a reshape.
        axes, orders: Theirs.

    Returns:
        A group of places per dim of the shorter shape as it lies in memory; None where dims of a group are not
        adjacent, or in another order than in the model.
    """
    (short_axes, short, _), (long_axes, long, sizes) = sorted(
        zip(axes, orders, shapes, strict=True), key=lambda s: len(s[0])
    )
    groups = [[dim for dim in long if long_axes[dim] == short_axes[each]] for each in short]
    large = [[dim for dim in group if sizes[dim] != 1] for group in groups]
    if [dim for group in groups for dim in group] != list(long) or any(group != sorted(group) for group in large):
        return None
    return [[long.index(dim) for dim in group] for group in groups]


def _linked(program: Program, op: Op, channels: Dims) -> Iterator[tuple[Hashable, Dims]]:
    """Yield the values of an op with their dims along some axes; a dim of size 1 beside others of its axis is none."""
    for value, axes in op.tied:
        shape = program.values[value].shape
        dims = [dim for dim, axis in enumerate(axes) if axis in channels]
        yield value, frozenset(dim for dim in dims if axes.count(axes[dim]) == 1 or shape[dim] != 1)
