"""Minimum cuts of directed graphs with capacities (Ford and Fulkerson 1956, shortest paths first: Edmonds and Karp)."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterable

Edge = tuple[Hashable, Hashable, int]
"""From a node to a node, with a capacity of 0 or more."""
Residual = dict[Hashable, Counter[Hashable]]
"""Capacity that is left from a node, by the node that it leads to."""


def sink_side(edges: Iterable[Edge], source: Hashable, sink: Hashable) -> frozenset[Hashable]:
    """Return the nodes on the sink's side of a cut of the least capacity, the fewest that such a cut has."""
    residual: Residual = defaultdict(Counter)
    for start, end, capacity in edges:
        residual[start][end] += capacity
        residual[end][start] += 0
    while path := _shortest_path(residual, source, sink):
        flow = min(residual[start][end] for start, end in path)
        for start, end in path:
            residual[start][end] -= flow
            residual[end][start] += flow
    return _reaching(residual, sink)


def _shortest_path(residual: Residual, source: Hashable, sink: Hashable) -> list[tuple[Hashable, Hashable]]:
    """Return the edges of a shortest path with capacity left, or none."""
    before: dict[Hashable, Hashable] = {source: source}
    waiting = deque([source])
    while waiting and sink not in before:
        node = waiting.popleft()
        new = [end for end, left in residual[node].items() if left and end not in before]
        before |= dict.fromkeys(new, node)
        waiting += new
    path, node = [], sink
    while node in before and node != source:
        path.append((before[node], node))
        node = before[node]
    return path[::-1]


def _reaching(residual: Residual, sink: Hashable) -> frozenset[Hashable]:
    """Return the nodes from which a path with capacity left leads to the sink, and the sink."""
    found = waiting = {sink}
    while waiting:
        waiting = {start for node in waiting for start in residual[node] if residual[start][node]} - found
        found |= waiting
    return frozenset(found)
