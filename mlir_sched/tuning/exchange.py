"""The exchange of traces between tasks: the best trace of one, repaired, is tried on others that it fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir_sched.payload import Dispatch
from mlir_sched.trace import Trace
from mlir_sched.tuning.task_search import TaskSearch

EXCHANGE = 3
"""Most tasks that try what has just been found for another one, and most such traces that a task starts from."""


@dataclass(frozen=True)
class Find:
    """The best trace of a task.

    Attributes:
        dispatch: The dispatch that it was found for.
        trace: The decisions.
        seconds_per_run: What the task takes with it per run of the model.
    """

    dispatch: Dispatch | None
    trace: Trace
    seconds_per_run: float


def finds_of(searches: Sequence[TaskSearch]) -> list[Find]:
    """Return the best traces so far, of tasks for which one is faster than the untuned code."""
    found = ((search, search.best_trace()) for search in searches)
    return [Find(s.task.dispatch, trace, s.seconds_per_run()) for s, trace in found if trace is not None]


def start_from_finds(searches: Sequence[TaskSearch], finds: Sequence[Find]) -> None:
    """Have every task go on from what was found for the same ops, else for the tasks that take the most time."""
    heaviest = sorted(finds, key=lambda find: find.seconds_per_run, reverse=True)
    for search in searches:
        same = [find for find in heaviest if find.dispatch == search.task.dispatch]
        for find in [*same, *heaviest][:EXCHANGE]:
            if (trace := search.fitted(find.trace)) is not None:
                search.start_from(trace)


def fits(found: Trace, source: TaskSearch, searches: Sequence[TaskSearch]) -> list[tuple[TaskSearch, Trace]]:
    """Return the other tasks that a task's trace fits, each with its repaired trace, the heaviest first."""
    others = [search for search in searches if search is not source and not search.exhausted]
    others.sort(key=TaskSearch.seconds_per_run, reverse=True)
    fitted = ((search, search.fitted(found)) for search in others)
    return [(search, trace) for search, trace in fitted if trace is not None]
