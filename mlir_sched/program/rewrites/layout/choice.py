"""Which ops of a program are computed channels last: so that the least is copied from one layout into the other.

What an op reads in another layout than it was made in is copied, once for all such readers. Convolutions and poolings
are channels last; what has no other layout stays in the model's. The rest is the smaller side of a minimum cut whose
capacities are the bytes of these copies.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Set
from typing import Any

from mlir_sched.program.rewrites.layout.channel_dims import Dims, Order, Program, channel_dims, moved_bytes, orders_last
from mlir_sched.program.rewrites.layout.minimum_cut import Edge, sink_side

LAST, FIRST = "channels last", "as in the model"
"""Source and sink of the graph."""


def choose(program: Program) -> Mapping[Any, dict[Any, Order]]:
    """Return the ops that are computed channels last, so that the least is copied, with the orders of their values."""
    known = channel_dims(program)
    free = {key: orders for key, op in program.ops.items() if (orders := orders_last(program, op, known))}
    first = sink_side(_edges(program, known, free.keys()), LAST, FIRST)
    return {key: orders for key, orders in free.items() if key not in first}


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
