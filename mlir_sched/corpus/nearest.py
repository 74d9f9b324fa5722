"""Which measured tasks are nearest to a dispatch: the order in which their candidates are worth a look."""

import math
from collections.abc import Iterable
from heapq import nsmallest
from itertools import zip_longest
from typing import Any

from mlir_sched.corpus.measured_task import MeasuredTask, default_space
from mlir_sched.payload import Dispatch, family_of
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.targets.target import Target


def nearest(tasks: Iterable[MeasuredTask], dispatch: Dispatch, target: Target, count: int) -> tuple[MeasuredTask, ...]:
    """Return up to ``count`` tasks for the same kind of target, the nearest to a dispatch first.

    First come those of its family with its sketches, then others of its family, then all others; of equals those
    nearest in size (:func:`distance`), then those with vectors of the same width, of the same machine, and for as many
    threads.
    """
    family, sketches = family_of(dispatch), DesignSpace(default_space(target), dispatch, target).sketches

    def rank(task: MeasuredTask) -> tuple[Any, ...]:
        other = task.family != family
        return (
            other,
            other or task.sketches != sketches,
            distance(task.dispatch, dispatch),
            task.target.vector_bytes != target.vector_bytes,
            task.target.machine != target.machine,
            task.target.cores != target.cores,
            task.key,
            task.context,
        )

    return tuple(nsmallest(count, (task for task in tasks if task.target.name == target.name), key=rank))


def distance(one: Dispatch, other: Dispatch) -> float:
    """Return the sum of the |log2| ratios of the extents of the roots' loops; a loop that one lacks has extent 1."""
    extents = zip_longest(one.root.extents, other.root.extents, fillvalue=1)
    return sum(abs(math.log2(first / second)) for first, second in extents)
