"""Programs as plain data, as far as layouts go, and which dims of their values are channels.

A dim of a value is a channel where a convolution or a pooling says so, or where an op links the dim to one of another
value. A value's *order* is how its dims lie in memory with channels last: all others first, both in the model's order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

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
        values: Numbers of the values that it reads, then of those that it makes.
        reads: How many of these it reads.
        axes: Per value and dim the axis of the op that the dim runs along; dims of one axis are linked. None for a dim
            that is linked to none, and for every dim of a value whose layout is not the program's, such as filters.
        form: For which orders it can be computed; None where only in the model's layout.
        channels: The axes that are channels, if the op itself says so: it is computed channels last if that is
            possible.
        key: Ops of one key are not told apart by a script, and are computed alike.
        kind: Ops of one key and several kinds need several replacements, so they are left in the model's layout.
    """

    values: tuple[int, ...]
    reads: int
    axes: tuple[tuple[int | None, ...], ...]
    form: Form | None
    channels: Dims = frozenset()
    key: Hashable = ""
    kind: Hashable = ""


@dataclass(frozen=True)
class Program:
    """Values and ops, in the program's order; a value that no op makes comes from outside, and one may go outside.

    Attributes:
        values: The values.
        ops: The ops; what leaves the program is read by an op without a form.
    """

    values: tuple[Value, ...]
    ops: tuple[Op, ...]


def order_of(rank: int, channels: Dims) -> Order:
    """Return the order of a value's dims in memory with channels last."""
    return (*(dim for dim in range(rank) if dim not in channels), *sorted(channels))


def moved_bytes(value: Value, channels: Dims) -> int:
    """Return what a copy from one layout into the other moves; 0 where only dims of size 1 change their places."""
    large = [dim for dim in order_of(len(value.shape), channels) if value.shape[dim] != 1]
    return value.bytes if large != sorted(large) else 0


def channel_dims(program: Program) -> Mapping[int, Dims]:
    """Return the dims that are channels, of the values for which they are known.

    What is nearest to a convolution counts where ops disagree.
    """
    known = {value: dims for op in program.ops for value, dims in _linked(program, op, op.channels) if op.channels}
    around: dict[int, list[Op]] = {}
    for op in program.ops:
        for value in op.values if op.form is not None else ():
            around.setdefault(value, []).append(op)
    waiting = deque(known)
    while waiting:
        for op in around.get(waiting.popleft(), ()):
            found = linked_dims(program, op, known)
            new = {value: dims for value, dims in (found or {}).items() if value not in known}
            known |= new
            waiting += new
    return known


def linked_dims(program: Program, op: Op, known: Mapping[int, Dims]) -> Mapping[int, Dims] | None:
    """Return the channels of all values of an op, from those that are known; None where these do not fit together."""
    axes = op.channels
    for value, dims_axes in zip(op.values, op.axes, strict=True):
        axes |= {dims_axes[dim] for dim in known.get(value, ()) if dims_axes[dim] is not None}  # type: ignore[misc]
    found = dict(_linked(program, op, axes))
    fit = all(
        _large(program, value, dims) == _large(program, value, known.get(value, dims)) for value, dims in found.items()
    )
    return {**found, **{value: known[value] for value in found if value in known}} if fit else None


def holds(program: Program, op: Op, known: Mapping[int, Dims]) -> bool:
    """Say whether an op can be computed with its values channels last."""
    if op.form is None or any(value not in known for value in _tied(op)) or linked_dims(program, op, known) is None:
        return False
    if op.form is Form.ANY:
        return True
    orders = [order_of(len(program.values[value].shape), known[value]) for value in _tied(op)]
    if op.form is Form.SAME:
        return len(set(orders)) == 1
    return (
        reshaped_groups(program.values[op.values[0]].shape, program.values[op.values[1]].shape, op.axes, orders)
        is not None
    )


def reshaped_groups(
    source: tuple[int, ...], result: tuple[int, ...], axes: tuple[tuple[int | None, ...], ...], orders: list[Order]
) -> list[list[int]] | None:
    """Return which adjacent dims of the longer shape, as it lies in memory, are one dim of the shorter.

    Args:
        source, result: The shapes of a reshape.
        axes: Of its source and its result.
        orders: The orders of both.

    Returns:
        A group of places per dim of the shorter shape as it lies in memory; None where dims of a group are not
        adjacent, or in another order than in the model.
    """
    (short_axes, short), (long_axes, long) = sorted(zip(axes, orders, strict=True), key=lambda pair: len(pair[0]))
    sizes = result if len(result) > len(source) else source
    groups = [[dim for dim in long if long_axes[dim] == short_axes[each]] for each in short]
    large = [[dim for dim in group if sizes[dim] != 1] for group in groups]
    if [dim for group in groups for dim in group] != list(long) or any(group != sorted(group) for group in large):
        return None
    return [[long.index(dim) for dim in group] for group in groups]


def _tied(op: Op) -> list[int]:
    """Return the values of an op that have dims of its axes, or no dims at all."""
    return [value for value, axes in zip(op.values, op.axes, strict=True) if any(axis is not None for axis in axes)]


def _linked(program: Program, op: Op, channels: Dims) -> Iterator[tuple[int, Dims]]:
    """Yield the values of an op with their dims along some axes; a dim of size 1 beside others of its axis is none."""
    for value, axes in zip(op.values, op.axes, strict=True):
        if all(axis is None for axis in axes):
            continue
        dims = [dim for dim, axis in enumerate(axes) if axis in channels]
        shape = program.values[value].shape
        alone = {dim for dim in dims if axes.count(axes[dim]) == 1 or shape[dim] != 1}
        yield value, frozenset(alone)


def _large(program: Program, value: int, dims: Dims) -> Dims:
    """Return the dims whose size is not 1."""
    return frozenset(dim for dim in dims if program.values[value].shape[dim] != 1)
