"""What stands in front of linear ops and can go: nothing else reads it, and there is less to compute without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from math import prod
from typing import Any

from mlir_sched.program.rewrites.linear.ahead import Ahead
from mlir_sched.program.rewrites.linear.behind import Behind

Fronts = Mapping[Any, Ahead]
"""What stands in front of linear ops, by these."""


def folded_fronts(fronts: Fronts, after: Mapping[Any, Behind]) -> Fronts:
    """Return what of each front can go.

    Args:
        fronts: Everything that the weights of each linear op can take.
        after: What follows each of them.
    """
    nexts = _nexts(fronts)
    read = {op: front.first(_agreed(front, nexts)) for op, front in fronts.items()}
    gone = {op for group in _groups(read) if not _is_gain(group, after) for op in group}
    left = {op: Ahead() if op in gone else front for op, front in read.items()}
    return left if left == fronts else folded_fronts(left, after)


def _nexts(fronts: Fronts) -> dict[Any, set[Any]]:
    """Return what linear ops, and ops in front of them, fold of what they read: None for nothing."""
    found = dict[Any, set[Any]]()
    for op, front in fronts.items():
        readers = [[op], *(step.readers for step in front.steps)]
        for each, read in zip(readers, [*(step.op for step in front.steps), None], strict=True):
            for reader in each:
                found.setdefault(reader, set()).add(read)
    return found


def _agreed(front: Ahead, nexts: Mapping[Any, set[Any]]) -> int:
    """Return how many ops of a front are folded by all linear ops that read them, and by nothing else."""

    def is_folded(op: Any) -> bool:
        return all(nexts.get(use.owner.operation) == {op} for use in op.results[0].uses)

    return sum(1 for _ in takewhile(is_folded, (step.op for step in front.steps)))


def _groups(fronts: Fronts) -> Iterator[Fronts]:
    """Yield the fronts that share an op, and so all that stands in front of that."""
    groups = dict[Any, dict[Any, Ahead]]()
    for op, front in fronts.items():
        if front.steps:
            groups.setdefault(front.steps[-1].op, {})[op] = front
    yield from groups.values()


def _is_gain(group: Fronts, after: Mapping[Any, Behind]) -> bool:
    """Say whether there is less to compute once what stands in front of linear ops is folded into their weights.

    What is shifted in front becomes an addition behind, which costs nothing where there is one already. Several linear
    ops get no other: what IREE does not fuse with one of them reads and writes all of its results once more, while the
    front is fused with what makes it.
    """
    saved = {step.op: step.elements for front in group.values() for step in front.steps if step.is_affine}
    added = [
        prod(op.results[0].type.shape)
        for op, front in group.items()
        if front.parts.shifts and not (after[op].has_bias or after[op].parts.shifts)
    ]
    return bool(sum(saved.values()) > sum(added)) and (len(group) == 1 or not added)
