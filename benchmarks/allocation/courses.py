"""The courses of tasks: searches in which every task gets as many candidates, with what each of them cost."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchmarks.allocation.recorded import RecordedCandidate, RecordedTask
from mlir_sched.database.work_cost import WorkCost, WorkKind
from mlir_sched.search import TaskProgress
from mlir_sched.tasks.task import Task
from mlir_sched.tuning.program_search import ProgramSearch
from mlir_sched.tuning.progress import Phase, SearchState
from mlir_sched.tuning.task_search import TaskSearch

FEWEST = 16
"""Candidates that every task has: two rounds."""
LIGHT = 0.005
"""Share of a program's time below which the course of a task is cut after :data:`FEWEST` candidates, flat from there on
as behind any end. A task's further candidates could make no program faster by more than that."""


@dataclass(frozen=True)
class EvenScheduler:
    """Gives the next round to the task with the fewest candidates, until each has enough.

    Attributes:
        most: Candidates that are enough.
    """

    most: int

    @property
    def key(self) -> str:
        """The key of runs with this scheduler."""
        return f"even-{self.most}"

    def next_task(self, progress: Sequence[TaskProgress]) -> int | None:
        """Return the index of the task; None when all have enough."""
        tried = [each.trials[-1] if each.trials else 0 for each in progress]
        open_ = [i for i, each in enumerate(progress) if not each.exhausted and tried[i] < self.most]
        return min(open_, key=lambda i: tried[i], default=None)


@dataclass(eq=False)
class CourseSearch(ProgramSearch):
    """A search that leaves out tasks whose course is known or does not matter any more.

    Attributes:
        wanted: Returns the keys of the tasks whose course goes on.
    """

    wanted: Callable[[CourseSearch], Collection[str]] = lambda program: [task.key for task in program.tasks]
    _known: dict[int, Collection[str]] = field(default_factory=dict)

    def _in_focus(self) -> list[TaskSearch]:
        if self.tried not in self._known:
            self._known = {self.tried: self.wanted(self)}
        wanted = self._known[self.tried]
        return [search for search in super()._in_focus() if search.task.key in wanted]


@dataclass(frozen=True)
class Quiet:
    """Tells nothing of a search but internal errors.

    Attributes:
        on_internal_error: Is told of an internal error.
    """

    on_internal_error: Callable[[str], None]

    def on_phase(self, phase: Phase, state: SearchState, dispatch: str = "") -> None:
        """Tell nothing."""


@dataclass(frozen=True)
class SearchedTasks:
    """The searches of the tasks of programs with the same flags, at the same place.

    Attributes:
        search: The search of all of them.
        costs: What its work cost.
        mark: What marks the keys of the tasks.
        same: The tasks, by key, whose course is that of a task with the same code under other flags.
    """

    search: ProgramSearch
    costs: Sequence[WorkCost]
    mark: str
    same: Mapping[str, str]

    def recorded(self, task: Task) -> RecordedTask:
        """Return a task with its course."""
        base = recorded_task(task, self.mark, tunable=any(task.key == each.key for each in self.search.tasks))
        found = next((each for each in self.search.searches if each.task.key == task.key), None)
        if found is None:
            return base
        ratios = [None if ratio is None else rounded(ratio) for ratio in found.history.ratios()]
        seconds = map(rounded, seconds_each(self.costs, task.key, len(ratios)))
        return replace(
            base,
            untuned_s=found.history.untuned.median_s,
            untuned_cost_s=sum(_seconds_of(self.costs, WorkKind.UNTUNED, task.key)),
            candidates=tuple(map(RecordedCandidate, ratios, seconds)),
            exhausted=found.exhausted,
            course_of=self.same.get(task.key, ""),
        )


def seconds_each(costs: Iterable[WorkCost], key: str, count: int) -> list[float]:
    """Return the seconds of each candidate of a task; where a process was stopped inside a round, their mean stands in.

    Args:
        count: How many candidates there are.
    """
    known = _seconds_of(costs, WorkKind.CANDIDATES, key)
    mean = statistics.fmean(known) if known else 0.0
    return [*known, *[mean] * (count - len(known))][:count]


def _seconds_of(costs: Iterable[WorkCost], kind: WorkKind, key: str) -> list[float]:
    """Return the seconds per candidate of all work of a kind on a task, each as often as there are candidates."""
    works = [cost for cost in costs if cost.kind is kind and cost.subject == key]
    return [cost.seconds / cost.count for cost in works for _ in range(cost.count)]


def recorded_task(task: Task, mark: str, *, tunable: bool) -> RecordedTask:
    """Return a task without a course."""
    words = (word.strip("\"'(){}[],") for word in task.source.split())
    ops = tuple(sorted({w for w in words if w.startswith(("linalg.", "iree_linalg_ext.")) and "<" not in w}))
    kept = task.key + mark, task.dispatch, task.not_tunable, task.inputs, task.outputs, task.constants
    return RecordedTask(*kept, ops, tunable)


def with_scripts_s(call_s: float, untuned_s: float, tuned_s: float) -> float:
    """Return the seconds per call of a program with scripts; what it takes beside its tasks stays.

    Args:
        call_s: Seconds per call without scripts.
        untuned_s, tuned_s: Seconds per call of its tasks, each alone, without scripts and with them.
    """
    return max(0.0, call_s - untuned_s) + tuned_s


def rounded(number: float) -> float:
    """Return a number with four digits, which are more than any figure here has."""
    return float(f"{number:.4g}")
