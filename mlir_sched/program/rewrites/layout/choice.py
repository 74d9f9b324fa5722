"""Which ops of a program are computed channels last: so that the least is copied from one layout into the other.

What an op reads in another layout than it was made in is copied, once for all such readers. Convolutions and poolings
are channels last; what has no other layout stays in the model's. The rest is the smaller side of a minimum cut whose
capacities are the bytes of these copies (Ford and Fulkerson 1956, shortest paths first: Edmonds and Karp). SciPy's
``maximum_flow`` has capacities of 32 bits, which bytes of images exceed.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from itertools import pairwise
from typing import Any

from mlir_sched.program.rewrites.layout.channel_dims import Dims, Order, Program, channel_dims, moved_bytes, orders_last

Edge = tuple[Hashable, Hashable, int]
"""From a node to a node of a graph, with a capacity of 0 or more."""
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


def sink_side(edges: Iterable[Edge], source: Hashable, sink: Hashable) -> frozenset[Hashable]:
    """Return the nodes on the sink's side of a cut of the least capacity, the fewest that such a cut has."""
    left = defaultdict[Hashable, Counter[Hashable]](Counter)  # capacity that is left to a node, from another one
    for start, end, capacity in edges:
        left[end][start] += capacity
    while source in (onward := _onward(sink, left, source)):
        nodes = [source]
        while nodes[-1] != sink:
            nodes.append(onward[nodes[-1]])
        path = [*pairwise(nodes)]
        flow = min(left[end][start] for start, end in path)
        for start, end in path:
            left[end][start] -= flow
            left[start][end] += flow
    return frozenset(onward)


def _onward(sink: Hashable, left: Mapping[Hashable, Counter[Hashable]], source: Hashable) -> dict[Hashable, Hashable]:
    """Return the nodes from which capacity leads to the sink, each with the next one on the way; up to the source."""
    onward, waiting = {sink: sink}, [sink]
    for node in waiting:
        if source not in onward:
            new = dict.fromkeys((start for start, some in left[node].items() if some and start not in onward), node)
            onward |= new
            waiting += new
    return onward
