"""The exchange of traces between tasks: the best trace of one task, repaired, is tried on others that it fits."""

from collections.abc import Sequence
from dataclasses import dataclass

from mlir_sched.payload import Dispatch
from mlir_sched.trace import Trace
from mlir_sched.tuning.task_search import TaskSearch

MOST_EXCHANGED = 3
"""Most tasks that try a trace just found for another task, and most found traces that a task starts from."""


@dataclass(frozen=True)
class FoundTrace:
    """The best trace of a task so far.

    Attributes:
        seconds_per_run: Seconds that the task takes with this trace per run of the model.
    """

    dispatch: Dispatch | None
    trace: Trace
    seconds_per_run: float


def found_traces(searches: Sequence[TaskSearch]) -> list[FoundTrace]:
    """Return the best trace so far of every task that has a trace faster than the untuned code."""
    found = ((search, search.history.best_trace()) for search in searches)
    return [FoundTrace(s.task.dispatch, trace, s.seconds_per_run()) for s, trace in found if trace is not None]


def offer_traces(searches: Sequence[TaskSearch], found: Sequence[FoundTrace]) -> None:
    """Give every task traces to try next: first those found for the same ops, then those of the heaviest tasks.

    The heaviest task takes the most time per run of the model. A task is offered at most
    :data:`MOST_EXCHANGED` traces, and takes those that fit and that it does not know yet.
    """
    heaviest = sorted(found, key=lambda each: each.seconds_per_run, reverse=True)
    for search in searches:
        same = [each for each in heaviest if each.dispatch == search.task.dispatch]
        for each in [*same, *heaviest][:MOST_EXCHANGED]:
            if (trace := search.fitted(each.trace)) is not None:
                search.start_from(trace)


def fitting(trace: Trace, source: TaskSearch, searches: Sequence[TaskSearch]) -> list[tuple[TaskSearch, Trace]]:
    """Return the other tasks that a task's trace fits, each with the trace repaired for it, the heaviest task first."""
    others = [search for search in searches if search is not source and not search.exhausted]
    others.sort(key=TaskSearch.seconds_per_run, reverse=True)
    fitted = ((search, search.fitted(trace)) for search in others)
    return [(search, repaired) for search, repaired in fitted if repaired is not None]
