"""Ops that move channels: what they do to these is what numpy does to an array.

The channels of a value lie along adjacent dimensions, from the same first one on in all values of a site. What is moved
along another dimension is no channel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.channels.gathers import gather
from mlir_sched.program.rewrites.channels.order import Numbers
from mlir_sched.program.rewrites.linalg_ops import (
    COLLAPSE,
    CONCAT,
    EMPTY,
    EXPAND,
    GENERIC,
    SLICE,
    TRANSPOSE,
    dim_of,
    groups_of,
    numbers_of,
    region_of,
)
from mlir_sched.program.rewrites.placed.links import Link, Read

T = TypeVar("T")
REORDERING = (GENERIC, TRANSPOSE)
"""Moves whose results have channels in another order, and which read them one by one where they lie side by side."""


class Span(NamedTuple):
    """The dimensions that the channels of a value lie along.

    Attributes:
        first: The first one.
        rank: How many there are.
    """

    first: int
    rank: int

    @property
    def end(self) -> int:
        """The dimension behind them."""
        return self.first + self.rank

    def of(self, each: Sequence[T]) -> list[T]:
        """Return what belongs to these dimensions, of what belongs to all."""
        return list(each)[self.first : self.end]

    def beside(self, each: Sequence[T]) -> list[T]:
        """Return what belongs to the others."""
        return [*list(each)[: self.first], *list(each)[self.end :]]


@dataclass(frozen=True)
class Move:
    """What one kind of op does to channels.

    Attributes:
        rank: Returns along how many dimensions the channels of what an op reads lie, given those of its result; None
            where it does anything else than to move channels.
        moved: Returns the channels of the result, given those of all that the op reads.
    """

    rank: Callable[[Any, Span], int | None]
    moved: Callable[[Any, Span, Sequence[Numbers]], Numbers]


def read_span(op: Any, span: Span) -> Span | None:
    """Return the dimensions of channels in what an op reads; None for an op that does anything else than to move them.

    Args:
        op: The op; None for what no op makes.
        span: The dimensions of channels in its result.
    """
    rank = None if op is None or op.name not in _MOVES else _MOVES[op.name].rank(op, span)
    return None if rank is None else Span(span.first, rank)


def read_links(op: Any) -> list[Link]:
    """Return the values whose channels a move moves, as it reads them."""
    if op.name == GENERIC:
        return [Read(op, 0)]
    return [Link(op, place) for place in range(len(op.operands) if op.name == CONCAT else 1)]


def keeps_all(op: Any) -> bool:
    """Say whether the result of a move has all channels of what it reads, each once."""
    if op.name == GENERIC:
        found = gather(op)
        return found is not None and sorted(found.places) == [*range(found.source.type.shape[found.dim])]
    return op.name in (COLLAPSE, EXPAND, TRANSPOSE)


def moved(op: Any, span: Span, numbers: Sequence[Numbers]) -> Numbers:
    """Return the channels of a move's result.

    Args:
        op: The move.
        span: The dimensions of channels in its result.
        numbers: The channels of :func:`read_links`.
    """
    return _MOVES[op.name].moved(op, span, numbers)


def _joined_rank(op: Any, span: Span) -> int | None:
    return span.rank if span.first <= dim_of(op) < span.end else None


def _joined(op: Any, span: Span, numbers: Sequence[Numbers]) -> Numbers:
    return np.concatenate(numbers, axis=dim_of(op) - span.first)


def _sliced_rank(op: Any, span: Span) -> int | None:
    kind, region = op.operands[0].type, region_of(op)
    if len(op.operands) > 1 or list(op.result.type.shape) != region[1]:
        return None
    offsets, sizes, strides = map(span.beside, region)
    whole = sizes == span.beside(kind.shape) and not any(offsets) and {*strides} <= {1}
    return span.rank if whole else None


def _sliced(op: Any, span: Span, numbers: Sequence[Numbers]) -> Numbers:
    parts = zip(*map(span.of, region_of(op)), strict=True)
    return numbers[0][tuple(slice(first, first + size * step, step) for first, size, step in parts)]


def _split_rank(op: Any, span: Span) -> int | None:
    own = [group for group in groups_of(op) if span.first <= group[0] < span.end]
    others = [group for group in groups_of(op) if group not in own]
    whole = bool(own) and own[-1][-1] < span.end and all(len(group) == 1 for group in others)
    return len(own) if whole and len(op.operands) == 1 else None


def _merged_rank(op: Any, span: Span) -> int | None:
    groups = groups_of(op)
    return sum(map(len, span.of(groups))) if all(len(group) == 1 for group in span.beside(groups)) else None


def _reshaped(op: Any, span: Span, numbers: Sequence[Numbers]) -> Numbers:
    return numbers[0].reshape(span.of(op.result.type.shape))


def _turned_rank(op: Any, span: Span) -> int | None:
    order, place = numbers_of(op, "permutation"), producer(op.operands[1])
    kept = span.beside(order) == span.beside(range(len(order)))
    return span.rank if kept and place is not None and place.name == EMPTY else None


def _turned(op: Any, span: Span, numbers: Sequence[Numbers]) -> Numbers:
    return numbers[0].transpose([dim - span.first for dim in span.of(numbers_of(op, "permutation"))])


def _gathered_rank(op: Any, span: Span) -> int | None:
    found = gather(op)
    return span.rank if found is not None and span.first <= found.dim < span.end else None


def _gathered(op: Any, span: Span, numbers: Sequence[Numbers]) -> Numbers:
    found = gather(op)
    assert found is not None
    return numbers[0].take(found.places, axis=found.dim - span.first)


_MOVES: Mapping[str, Move] = {
    COLLAPSE: Move(_merged_rank, _reshaped),
    CONCAT: Move(_joined_rank, _joined),
    EXPAND: Move(_split_rank, _reshaped),
    GENERIC: Move(_gathered_rank, _gathered),
    SLICE: Move(_sliced_rank, _sliced),
    TRANSPOSE: Move(_turned_rank, _turned),
}
"""By name of op."""
