"""Which ops of a program are computed channels last: so that the least is copied from one layout into the other.

What an op reads in another layout than it was made in is copied, once for all such readers. Convolutions and poolings
are channels last; what has no other layout stays in the model's. The rest is the smaller side of a minimum cut whose
capacities are the bytes of these copies.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

from mlir_sched.program.rewrites.layout.channel_dims import (
    Dims,
    Program,
    channel_dims,
    holds,
    moved_bytes,
)
from mlir_sched.program.rewrites.layout.minimum_cut import Edge, sink_side

LAST, FIRST = "channels last", "as in the model"
"""Source and sink of the graph."""


@dataclass(frozen=True)
class Choice:
    """The layout of every value.

    Attributes:
        channels: The dims that are channels, by value; none for values that are not listed.
        last: The keys of the ops that are computed channels last.
        copied: The values that are copied into the other layout, with the bytes of each.
    """

    channels: Mapping[int, Dims]
    last: frozenset[Hashable]
    copied: Mapping[int, int]


def choose(program: Program, without: frozenset[Hashable] = frozenset()) -> Choice:
    """Return the layout in which a program copies the least.

    Args:
        program: The program.
        without: Keys of ops that stay in the model's layout.
    """
    known = channel_dims(program)
    free = _free(program, known) - without
    weights = {
        number: moved_bytes(value, known.get(number, frozenset())) for number, value in enumerate(program.values)
    }
    edges = list(_edges(program, free, weights))
    first = sink_side(edges, LAST, FIRST)
    last = free - first
    return Choice(known, last, {value: weights[value] for value in _between(program, last) if weights[value]})


def _free(program: Program, known: Mapping[int, Dims]) -> frozenset[Hashable]:
    """Return the keys of ops that can all be computed channels last, by one replacement."""
    forms: dict[Hashable, set[Hashable]] = {}
    for op in program.ops:
        dims = tuple(known.get(value) for value in op.values) if holds(program, op, known) else None
        forms.setdefault(op.key, set()).add((op.kind, dims))
    return frozenset(key for key, found in forms.items() if len(found) == 1 and next(iter(found))[1] is not None)  # type: ignore[index]


def _edges(program: Program, free: frozenset[Hashable], weights: Mapping[int, int]) -> Iterator[Edge]:
    """Yield the edges of the graph; a value's copy in front of readers is a node, one for either direction."""
    endless = sum(weights.values()) + 1
    yield from ((LAST, op.key, endless) for op in program.ops if op.key in free and op.channels)
    for value, (maker, readers) in _users(program, free).items():
        for weight in filter(None, [weights[value]]):
            yield maker, (value, FIRST), weight
            yield from (((value, FIRST), reader, endless) for reader in readers)
            yield (value, LAST), maker, weight
            yield from ((reader, (value, LAST), endless) for reader in readers)


def _users(program: Program, free: frozenset[Hashable]) -> Mapping[int, tuple[Hashable, set[Hashable]]]:
    """Return which node makes a value, and which nodes read it."""
    made: dict[int, Hashable] = {}
    read: dict[int, set[Hashable]] = {}
    for op in program.ops:
        node = op.key if op.key in free else FIRST
        made |= dict.fromkeys(op.values[op.reads :], node)
        for value in op.values[: op.reads]:
            read.setdefault(value, set()).add(node)
    return {value: (made.get(value, FIRST), readers) for value, readers in read.items()}


def _between(program: Program, last: frozenset[Hashable]) -> Iterator[int]:
    """Yield the values that are read in another layout than they are made in."""
    for value, (maker, readers) in _users(program, last).items():
        if readers - {FIRST} if maker == FIRST else FIRST in readers:
            yield value
