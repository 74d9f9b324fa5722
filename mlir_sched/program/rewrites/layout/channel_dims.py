"""Programs as plain data, as far as layouts go, and which dims of their values are channels.

A dim of a value is a channel where a convolution or a pooling says so, or where an op links the dim to one of another
value. A value's *order* is how its dims lie in memory with channels last: all others first, both in the model's order.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

Dims = frozenset[int]
Order = tuple[int, ...]
Axes = Sequence[int | None]
"""The axis of an op that each dim of a value runs along; None for a dim that is linked to none."""


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
        tied: Those whose layout is the program's, those that are read first, with the axes of their dims; dims of one
            axis are linked. None where the op can be computed in the model's layout alone.
        channels: The axes that are channels, if the op itself says so: it is computed channels last if that is
            possible.
        reshapes: Whether dims of one axis are merged into one, or split from it: they have to be adjacent in memory.
    """

    reads: tuple[Hashable, ...]
    makes: tuple[Hashable, ...]
    tied: tuple[tuple[Hashable, tuple[int | None, ...]], ...] = ()
    channels: Dims = frozenset()
    reshapes: bool = False


@dataclass(frozen=True)
class Program:
    """Values and ops.

    Attributes:
        values: The values, by a key; one that no op makes comes from outside.
        ops: The ops, by a key, in the program's order; what leaves the program is read by an op that ties none.
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
    ops = program.ops.values()
    known = {value: dims for op in ops if op.channels for value, dims in _linked(program, op, op.channels)}
    around: dict[Hashable, list[Op]] = {}
    for op in ops:
        for value, _ in op.tied:
            around.setdefault(value, []).append(op)
    waiting = [*known]
    for each in waiting:
        for op in around.get(each, ()):
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
    if any(value not in known for value, _ in op.tied) or not linked_dims(program, op, known):
        return {}
    values, axes = zip(*op.tied, strict=True)
    shapes = [program.values[value].shape for value in values]
    orders = [order_of(len(shape), known[value]) for value, shape in zip(values, shapes, strict=True)]
    fit = reshaped_groups(shapes, axes, orders) if op.reshapes else len({*axes}) > 1 or len({*orders}) == 1
    return dict(zip(values, orders, strict=True)) if fit else {}


def reshaped_groups(shapes: Sequence[Sequence[int]], axes: Sequence[Axes], orders: Sequence[Order]) -> list[list[int]]:
    """Return which adjacent dims of the longer shape, as it lies in memory, are one dim of the shorter.

    Args:
        shapes: Those of the source and the result of a reshape, neither of them a scalar.
        axes, orders: Theirs.

    Returns:
        A group of places per dim of the shorter shape as it lies in memory; none where dims of a group are not
        adjacent, or in another order than in the model.
    """
    both = sorted(zip(axes, orders, shapes, strict=True), key=lambda each: len(each[0]))
    (short_axes, short, _), (long_axes, long, sizes) = both
    groups = [[dim for dim in long if long_axes[dim] == short_axes[each]] for each in short]
    large = [[dim for dim in group if sizes[dim] != 1] for group in groups]
    fit = [*chain(*groups)] == [*long] and all(group == sorted(group) for group in large)
    return [[long.index(dim) for dim in group] for group in groups] if fit else []


def _linked(program: Program, op: Op, channels: Dims) -> Iterator[tuple[Hashable, Dims]]:
    """Yield the values of an op with their dims along some axes; a dim of size 1 beside others of its axis is none."""
    for value, axes in op.tied:
        shape = program.values[value].shape
        dims = [dim for dim, axis in enumerate(axes) if axis in channels]
        yield value, frozenset(dim for dim in dims if axes.count(axes[dim]) == 1 or shape[dim] != 1)
