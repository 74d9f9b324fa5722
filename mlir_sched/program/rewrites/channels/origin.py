"""Where the channels of a value come from: through slices, joins, reshapes and transposes, back to what makes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.channels.moves import Span, moved, moved_values, read_span
from mlir_sched.program.rewrites.channels.order import Numbers, numbered
from mlir_sched.program.rewrites.convolution_ops import is_static_f32
from mlir_sched.program.rewrites.dag_site import Path
from mlir_sched.program.rewrites.seen import kind

MOST_MOVES = 64
"""Moves one behind the other that channels are followed through. A script compares all of them for every site, so that
scripts of programs with n of them in a row would have n^2 comparisons."""


@dataclass(frozen=True, eq=False)
class Origin:
    """Where the channels of a value come from.

    Attributes:
        sources: The values that have the channels along one dimension, each with the way to it.
        moves: The ops from the value back to the sources.
        numbers: The channels of the value, by their numbers among those of all sources, one source behind the other.
        form: A key, equal for values of equal moves of as many sources.
    """

    sources: Mapping[Any, Path]
    moves: tuple[Any, ...]
    numbers: Numbers
    form: tuple[Any, ...]


def is_known(value: Any, span: Span) -> bool:
    """Say whether the channels of a value come from values that have theirs along one dimension."""
    if span.rank == 1:
        return is_static_f32(value)
    op = producer(value)
    inner = read_span(op, span)
    return inner is not None and all(is_known(each, inner) for each in moved_values(op))


def origin(value: Any, span: Span, way: Path) -> Origin:
    """Return where the channels of a value come from.

    Args:
        value: The value; where its channels come from is known (:func:`is_known`).
        span: The dimensions that they lie along.
        way: The way to the value.
    """
    walked = _Walked(span.first)
    numbers = walked.follow(value, span, way)
    return Origin(walked.sources, tuple(walked.moves), numbers, walked.form)


@dataclass
class _Walked:
    """Moves while they are followed back.

    Attributes:
        first: The first dimension of channels.
        sources, moves: As those of an origin.
        known: The channels of the values so far, by value and number of dimensions.
        size: The channels of all sources so far.
    """

    first: int
    sources: dict[Any, Path] = field(default_factory=dict)
    moves: list[Any] = field(default_factory=list)
    known: dict[tuple[Any, int], Numbers] = field(default_factory=dict)
    size: int = 0

    def follow(self, value: Any, span: Span, way: Path) -> Numbers:
        """Return the channels of a value; each value is followed once."""
        key = value, span.rank
        if key not in self.known:
            self.known[key] = self._followed(value, span, way)
        return self.known[key]

    def _followed(self, value: Any, span: Span, way: Path) -> Numbers:
        op = producer(value)
        inner = read_span(op, span)
        ends = span.rank == 1 and len(way) > MOST_MOVES
        if inner is None or ends or not all(is_known(each, inner) for each in moved_values(op)):
            return self._source(value, way)
        self.moves.append(op)
        read = enumerate(moved_values(op))
        return moved(op, span, [self.follow(each, inner, (*way, place)) for place, each in read])

    def _source(self, value: Any, way: Path) -> Numbers:
        self.sources[value] = way
        numbers = numbered(value.type.shape[self.first], self.size)
        self.size += len(numbers)
        return numbers

    @property
    def form(self) -> tuple[Any, ...]:
        """A key, equal for equal moves of as many sources."""
        made = [*self.sources, *(op.result for op in self.moves)]
        return tuple((kind(op), *(made.index(each) for each in moved_values(op))) for op in self.moves)
