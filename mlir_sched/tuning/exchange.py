"""The exchange of traces between tasks: the best trace of one task, repaired, is tried on others that it fits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir_sched.corpus.nearest import distance
from mlir_sched.payload import Dispatch, family_of
from mlir_sched.trace import Trace
from mlir_sched.tuning.task_search import TaskSearch

MOST_EXCHANGED = 3
"""Most tasks that try a trace just found for another task, and most found traces that a task is offered."""
LOOKED_AT = 4 * MOST_EXCHANGED
"""Most found traces that are repaired for a task to see whether they fit: each takes about a third of a millisecond."""


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
    """Offer every task the best traces of the tasks that are nearest to it, in the place of earlier offers.

    First come those of the same ops, then those of its family, the nearest in size first, then those of the tasks that
    take the most time per run of the model. A task is offered at most :data:`MOST_EXCHANGED` traces: those that fit and
    that it does not know yet.
    """
    for search in searches:
        nearest = sorted(found, key=_nearness(search))[:LOOKED_AT]
        search.offer([each.trace for each in nearest], MOST_EXCHANGED)


def fitting(trace: Trace, source: TaskSearch, searches: Sequence[TaskSearch]) -> list[tuple[TaskSearch, Trace]]:
    """Return the other tasks that a task's trace fits, each with the trace repaired for it, the heaviest task first."""
    others = [search for search in searches if search is not source and not search.exhausted]
    others.sort(key=TaskSearch.seconds_per_run, reverse=True)
    fitted = ((search, search.fitted(trace)) for search in others)
    return [(search, repaired) for search, repaired in fitted if repaired is not None]


def _nearness(search: TaskSearch) -> Callable[[FoundTrace], tuple[bool, bool, float, float]]:
    """Return the order in which a task is offered what others found."""
    own = search.space.dispatch
    family = family_of(own)

    def order(found: FoundTrace) -> tuple[bool, bool, float, float]:
        other = found.dispatch is None or family_of(found.dispatch) != family
        apart = 0.0 if other or found.dispatch is None else distance(found.dispatch, own)
        return found.dispatch != own, other, apart, -found.seconds_per_run

    return order
