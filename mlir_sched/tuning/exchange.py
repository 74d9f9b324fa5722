"""The exchange of traces between tasks: the best trace of one task, repaired, is tried on others that it fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir_sched.payload import Dispatch
from mlir_sched.trace import Trace
from mlir_sched.tuning.task_search import TaskSearch

EXCHANGE = 3
"""Maximum number of tasks that try a trace just found for another task, and of finds that a task starts from."""


@dataclass(frozen=True)
class Find:
    """The best trace of a task.

    Attributes:
        dispatch: The dispatch that it was found for.
        trace: The decisions.
        seconds_per_run: Seconds that the task takes with this trace per run of the model.
    """

    dispatch: Dispatch | None
    trace: Trace
    seconds_per_run: float


def finds_of(searches: Sequence[TaskSearch]) -> list[Find]:
    """Return the best trace so far of every task that has a trace faster than the untuned code."""
    found = ((search, search.history.best_trace()) for search in searches)
    return [Find(s.task.dispatch, trace, s.seconds_per_run()) for s, trace in found if trace is not None]


def start_from_finds(searches: Sequence[TaskSearch], finds: Sequence[Find]) -> None:
    """Give every task traces to try next: first the finds for the same ops, then those of the heaviest tasks.

    The heaviest task takes the most time per run of the model. A task is offered at most :data:`EXCHANGE` finds, and
    takes those that fit it and that it does not know yet.
    """
    heaviest = sorted(finds, key=lambda find: find.seconds_per_run, reverse=True)
    for search in searches:
        same = [find for find in heaviest if find.dispatch == search.task.dispatch]
        for find in [*same, *heaviest][:EXCHANGE]:
            if (trace := search.fitted(find.trace)) is not None:
                search.start_from(trace)


def fits(found: Trace, source: TaskSearch, searches: Sequence[TaskSearch]) -> list[tuple[TaskSearch, Trace]]:
    """Return the other tasks that a task's trace fits, each with the trace repaired for it, the heaviest task first."""
    others = [search for search in searches if search is not source and not search.exhausted]
    others.sort(key=TaskSearch.seconds_per_run, reverse=True)
    fitted = ((search, search.fitted(found)) for search in others)
    return [(search, trace) for search, trace in fitted if trace is not None]
