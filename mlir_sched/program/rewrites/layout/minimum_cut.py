"""Minimum cuts of directed graphs with capacities (Ford and Fulkerson 1956, shortest paths first: Edmonds and Karp)."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterable, Mapping
from itertools import pairwise

Edge = tuple[Hashable, Hashable, int]
"""From a node to a node, with a capacity of 0 or more."""


def sink_side(edges: Iterable[Edge], source: Hashable, sink: Hashable) -> frozenset[Hashable]:
    """Return the nodes on the sink's side of a cut of the least capacity, the fewest that such a cut has."""
    left = defaultdict[Hashable, Counter[Hashable]](Counter)  # capacity that is left to a node, from another one
    for start, end, capacity in edges:
        left[end][start] += capacity
        left[start][end] += 0
    while source in (after := _leading_to(sink, left, source)):
        path = [source]
        while path[-1] != sink:
            path.append(after[path[-1]])
        flow = min(left[end][start] for start, end in pairwise(path))
        for start, end in pairwise(path):
            left[end][start] -= flow
            left[start][end] += flow
    return frozenset(after)


def _leading_to(
    sink: Hashable, left: Mapping[Hashable, Counter[Hashable]], source: Hashable
) -> dict[Hashable, Hashable]:
    """Return the nodes from which capacity leads to the sink, each with the next one; up to the source."""
    after, waiting = {sink: sink}, deque([sink])
    while waiting and source not in after:
        node = waiting.popleft()
        new = [start for start, some in left[node].items() if some and start not in after]
        after |= dict.fromkeys(new, node)
        waiting += new
    return after
