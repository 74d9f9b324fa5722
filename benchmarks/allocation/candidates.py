"""Recorded tasks as a search sees them: design spaces, strategies and evaluators without a compiler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from zlib import crc32

import numpy as np

from benchmarks.allocation.recorded import Called, RecordedCandidate, RecordedRun, RecordedTask
from benchmarks.allocation.virtual import VirtualClock
from mlir_sched.errors import Failure, FailureClass, IllegalTraceError
from mlir_sched.evaluation.evaluator import Evaluator, UntunedError
from mlir_sched.models.shared_model import SharedCostModel
from mlir_sched.outcome import Outcome, Timing, Verdict
from mlir_sched.payload import Dispatch
from mlir_sched.search import SearchSpace, SearchStrategy
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.features import COUNT
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.transform_scripts.module import Sketch

SHIFT = 16
"""Places by which a candidate may move in another order of a course: two rounds. A whole shuffle would lose what a
search learns on its way: its last candidates are better than its first ones."""
FLAT = 256
"""Candidates behind the end of a course that was cut, none of which is faster than those before. No run that is
replayed comes so far in one task."""
WIDTH = 0.02
"""Half the width of the intervals of replayed times, relative to them."""


@dataclass(frozen=True)
class Course:
    """The candidates of a recorded task in one order.

    Attributes:
        task: The task.
        candidates: The candidates in their order.
        traces: A trace per candidate, which says nothing but its number.
    """

    task: RecordedTask
    candidates: tuple[RecordedCandidate, ...]
    traces: tuple[Trace, ...]

    @staticmethod
    def of(task: RecordedTask, order: int) -> Course:
        """Return the course of a task in an order; the order 0 is that of the recording."""
        known = list(task.candidates)
        if order:
            rng = np.random.default_rng([order, crc32(task.key.encode())])
            places = np.arange(len(known)) + rng.uniform(0.0, SHIFT, len(known))
            known = [known[index] for index in np.argsort(places, kind="stable")]
        if known and not task.exhausted:
            known += FLAT * [RecordedCandidate(None, float(np.mean([each.seconds for each in known])))]
        traces = [Trace(f"{task.key} {index}", ()) for index in range(len(known))]
        return Course(task, tuple(known), tuple(traces))

    @cached_property
    def by_trace(self) -> Mapping[str, RecordedCandidate]:
        """The candidates by the keys of their traces, which are their scripts, too."""
        return {trace.key: candidate for trace, candidate in zip(self.traces, self.candidates, strict=True)}


class RecordedDesign(DesignSpace):
    """The design space of a recorded task: its course."""

    def __init__(self, course: Course, target: Target) -> None:
        assert course.task.dispatch is not None
        self.dispatch, self.target, self.course = course.task.dispatch, target, course

    @property
    def sketches(self) -> tuple[str, ...]:
        """One sketch."""
        return ("recorded",)

    def script(self, trace: Trace, applied: str | None = None) -> str:
        """Return the key of a trace."""
        del applied
        return trace.key

    def legal(self, trace: Trace) -> Trace:
        """Return a trace of the course.

        Raises:
            IllegalTraceError: It is one of another course.
        """
        if trace.key not in self.course.by_trace:
            raise IllegalTraceError("a candidate of another task")
        return trace

    def repaired(self, trace: Trace, rng: np.random.Generator | None = None) -> Trace:
        """Return a trace of the course; what a trace of another task would be worth here is not recorded.

        Raises:
            IllegalTraceError: It is one of another course.
        """
        del rng
        return self.legal(trace)

    def features(self, traces: Sequence[Trace]) -> np.ndarray:
        """Return features that say nothing."""
        return np.zeros((len(traces), COUNT), dtype=np.float32)


class RecordedOrder(SearchStrategy):
    """Suggests the candidates of a course in their order."""

    preselected = False

    def __init__(self, space: SearchSpace, rng: np.random.Generator, model: SharedCostModel | None = None) -> None:
        super().__init__(space, rng, model)
        assert isinstance(space, RecordedDesign)
        self._traces = space.course.traces

    def propose(self, count: int) -> list[Trace]:
        """Return the next traces that are not known."""
        return list(islice((trace for trace in self._traces if trace.key not in self._seen), count))


class RecordedSpace(Space):
    """The space of a recorded run: each task that had scripts has one sketch."""

    def __init__(self, tasks: RecordedTasks) -> None:
        super().__init__(())
        self._tasks = tasks

    @property
    def sources(self) -> str:
        """The scripts come from the recording."""
        return "recorded"

    def sketches(self, dispatch: Dispatch, target: Target) -> tuple[Sketch, ...]:
        """Return a sketch for a dispatch that had scripts."""
        del target
        return (Sketch("recorded", complete=True),) if self._tasks.course_of(dispatch).task.tunable else ()

    def design(self, space: Space, dispatch: Dispatch, target: Target) -> RecordedDesign:
        """Return the design space of a dispatch."""
        del space
        return RecordedDesign(self._tasks.course_of(dispatch), target)


@dataclass
class RecordedTasks:
    """The tasks of a recorded run in one order.

    Attributes:
        run: The recorded run.
        order: The order of the courses.
    """

    run: RecordedRun
    order: int
    _by_dispatch: dict[int, Course] = field(default_factory=dict)
    _by_key: dict[str, Course] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for task in self.run.tasks:
            self._by_key[task.key] = course = Course.of(self.run.with_course(task), self.order)
            if task.dispatch is not None:
                self._by_dispatch[id(task.dispatch)] = course

    def course(self, key: str) -> Course:
        """Return the course of a task."""
        return self._by_key[key]

    def course_of(self, dispatch: Dispatch) -> Course:
        """Return the course of the task that has this very dispatch: equal dispatches may be different tasks."""
        return self._by_dispatch[id(dispatch)]

    def task(self, called: Called) -> Task:
        """Return a task as a program calls it."""
        task = self.course(called.key).task
        return Task(
            called.key,
            called.name,
            called.weight,
            " ".join(task.ops),
            task.inputs,
            task.outputs,
            task.dispatch,
            task.not_tunable,
            (),
            task.constants,
        )


@dataclass(frozen=True)
class RecordedEvaluator(Evaluator):
    """Says what was measured when the run was recorded, and lets the seconds pass that it took.

    Attributes:
        tasks: The tasks.
        clock: The clock of the replay.
    """

    tasks: RecordedTasks
    clock: VirtualClock

    def untuned(self, task: Task, following: Sequence[Task] = ()) -> Outcome:
        """Return the outcome of the task's untuned code."""
        del following
        recorded = self.tasks.course(task.key).task
        self.clock.works(recorded.untuned_cost_s)
        if recorded.untuned_s is None:
            raise UntunedError("it could not be measured when the run was recorded", is_lasting=True)
        return Outcome(timing_of(self.clock.speed * recorded.untuned_s, 1.0), None, task.key, verdict=Verdict.RIGHT)

    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        """Yield the outcome of every script."""
        del known
        course = self.tasks.course(task.key)
        assert course.task.untuned_s is not None
        self.clock.works(self.tasks.run.round_s)
        for index, script in enumerate(scripts):
            candidate = course.by_trace[script]
            self.clock.works(candidate.seconds)
            if candidate.ratio is None:
                yield index, Outcome(None, Failure(FailureClass.NOT_APPLIED, "recorded as a failure"), script)
            else:
                timing = timing_of(self.clock.speed * course.task.untuned_s / candidate.ratio, candidate.ratio)
                yield index, Outcome(timing, None, script, verdict=Verdict.RIGHT)


def timing_of(seconds: float, ratio: float) -> Timing:
    """Return a measured timing."""
    low, high = 1 - WIDTH, 1 + WIDTH
    return Timing(seconds, low * seconds, high * seconds, 20, ratio, low * ratio, high * ratio)
