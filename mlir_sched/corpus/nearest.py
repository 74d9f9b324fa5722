"""Which known tasks are nearest to a dispatch: the order in which their candidates are worth a look."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from mlir_sched.corpus.known_task import KnownTask, default_space
from mlir_sched.corpus.measured_task import MeasuredTask
from mlir_sched.payload import Dispatch, extent_distance, family_of
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.targets.target import Target

Order: TypeAlias = Callable[[KnownTask], tuple[Any, ...]]
"""A key to sort by; the first entry says whether a task is of another family."""


def nearest(known: Iterable[KnownTask], dispatch: Dispatch, target: Target, count: int) -> tuple[MeasuredTask, ...]:
    """Return up to ``count`` tasks for the same kind of target, the nearest to a dispatch first (:func:`nearness`).

    Each dispatch is there once: of its tasks with candidates, the nearest one.
    """
    found = dict[Dispatch, MeasuredTask]()
    of_kind = (task for task in known if task.target.name == target.name)
    for task in sorted(of_kind, key=nearness(dispatch, target)):
        if len(found) == count:
            break
        if task.dispatch not in found and (measured := task.as_measured) is not None:
            found[task.dispatch] = measured
    return tuple(found.values())


def nearness(dispatch: Dispatch, target: Target) -> Order:
    """Return the order of tasks by how near they are to a dispatch on a target.

    First come those of its family with its sketches, then others of its family, then all others; of equals those
    nearest in size (:func:`distance`), then those with vectors of the same width, of the same machine, and for as many
    threads.
    """
    family, sketches = family_of(dispatch), DesignSpace(default_space(target), dispatch, target).sketches

    def order(task: KnownTask) -> tuple[Any, ...]:
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

    return order


def distance(one: Dispatch, other: Dispatch) -> float:
    """Return how far apart the two ops that decide the families are in size; what is fused with them does not count."""
    return extent_distance(one.main_op.extents, other.main_op.extents)
