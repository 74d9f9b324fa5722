"""Which ops of a program are computed channels last: so that the least is copied from one layout into the other.

What an op reads in another layout than it was made in is copied, once for all such readers. Convolutions and poolings
are channels last; what has no other layout stays in the model's. The rest is the smaller side of a minimum cut whose
capacities are the bytes of these copies.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Set
from dataclasses import dataclass

from mlir_sched.program.rewrites.layout.channel_dims import (
    Dims,
    Op,
    Order,
    Program,
    channel_dims,
    holds,
    moved_bytes,
    order_of,
)
from mlir_sched.program.rewrites.layout.minimum_cut import Edge, sink_side

LAST, FIRST = "channels last", "as in the model"
"""Source and sink of the graph."""


@dataclass(frozen=True)
class Choice:
    """The layout of every value.

    Attributes:
        channels: The dims that are channels, by value; none for values that are not listed.
        last: The ops that are computed channels last.
    """

    channels: Mapping[Hashable, Dims]
    last: frozenset[Hashable]

    def orders(self, op: Op) -> dict[Hashable, Order]:
        """Return the orders of the values of an op that is computed channels last."""
        return {value: order_of(len(axes), self.channels[value]) for value, axes in op.tied}


def choose(program: Program) -> Choice:
    """Return the layout in which a program copies the least."""
    known = channel_dims(program)
    free = {key for key, op in program.ops.items() if holds(program, op, known)}
    return Choice(known, frozenset(free - sink_side(_edges(program, known, free), LAST, FIRST)))


def _edges(program: Program, known: Mapping[Hashable, Dims], free: Set[Hashable]) -> Iterator[Edge]:
    """Yield the edges of the graph; a value's copy in front of readers is a node, one for either direction."""
    weights = {each: moved_bytes(value, known.get(each, frozenset())) for each, value in program.values.items()}
    endless = sum(weights.values()) + 1
    nodes = {key: key if key in free else FIRST for key in program.ops}
    makers = {value: nodes[key] for key, op in program.ops.items() for value in op.makes}
    for value, weight in weights.items():
        yield makers.get(value, FIRST), (value, FIRST), weight
        yield (value, LAST), makers.get(value, FIRST), weight
    for key, op in program.ops.items():
        if key in free and op.channels:
            yield LAST, key, endless
        for value in filter(weights.get, op.reads):
            yield (value, FIRST), nodes[key], endless
            yield nodes[key], (value, LAST), endless
