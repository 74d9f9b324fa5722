"""Recording of a network: every plan that the pipeline can make, and the search of each of its tasks to an end.

The work is that of a tuning run, by the same code; only its order is another one: no rule decides what is worth its
time. A recording that was stopped goes on: what was measured is in its folder.
"""

import math
import statistics
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from benchmarks.allocation.courses import (
    FEWEST,
    LIGHT,
    CourseSearch,
    EvenScheduler,
    Quiet,
    SearchedTasks,
    rounded,
    with_scripts_s,
)
from benchmarks.allocation.recorded import Called, EndCosts, RecordedAlgorithm, RecordedPlan, RecordedTask
from mlir_sched import TuneOptions
from mlir_sched.compiler.binary_hash import program_hash
from mlir_sched.compiler.reasons import reason
from mlir_sched.database import RecordStore
from mlir_sched.database.work_cost import WorkCost, WorkKind
from mlir_sched.errors import MlirSchedError
from mlir_sched.evaluation.evaluator import Evaluators
from mlir_sched.meter import MeasuredOnDevice
from mlir_sched.program.checking.captured_values import ValueRecorder
from mlir_sched.program.plan import Site
from mlir_sched.program.program_space import ProgramSpace
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants.choosing import SHORT_S, BuiltVariants
from mlir_sched.program.variants.other_algorithms import Algorithms
from mlir_sched.program.variants.programs import Programs
from mlir_sched.program.variants.rewritten import flagged_variants
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.tensors.parameters import ParameterFile
from mlir_sched.tuning.budget import Allowance
from mlir_sched.tuning.search_method import SearchMethod
from mlir_sched.tuning.task_search import TaskSearch
from mlir_sched.tuning.tuning_run import TuningRun

CALLING_THREAD = "@calling-thread"
"""Marks the keys of tasks of programs that run in the calling thread of a run on several threads."""
END_S = 1e6
"""Seconds for the finalists at the end: without a limit, every report would be as long as in a run by trials."""
ENOUGH_GAPS = 20
"""Gaps between pieces of work from which a process that is stopped knows their median."""


@dataclass
class Recording:
    """The recording of one network on this machine.

    Attributes:
        path: The network.
        parameters: Files with its weights.
        store: Where what is measured is kept.
        meter: Measures.
        most: Candidates after which the course of a task is cut.
        end: When to stop, by ``time.monotonic()``.
        begin_s: Seconds of the beginning that belong to no plan: looking at the functions, and at the rewrites.
        plans: What is recorded of each plan so far, by name.
        built: The plans that IREE compiles, the default first.
        tasks: All tasks, by key, of the plans with the same flags and place.
        courses: The searches that came to their end.
        sites: The sites that another algorithm can compute.
    """

    path: Path
    parameters: tuple[ParameterFile, ...]
    store: RecordStore
    meter: MeasuredOnDevice
    most: int
    end: float
    begin_s: float = 0.0
    plans: dict[str, RecordedPlan] = field(default_factory=dict)
    built: dict[str, BuiltVariant] = field(default_factory=dict)
    tasks: dict[tuple[tuple[str, ...], bool], dict[str, Task]] = field(default_factory=dict)
    courses: list[SearchedTasks] = field(default_factory=list)
    sites: tuple[Site, ...] = ()
    _gaps_s: list[float] = field(default_factory=list)
    _by_code: dict[tuple[object, ...], str] = field(default_factory=dict)

    @property
    def target(self) -> Target:
        """The target."""
        return self.meter.target

    def make_plans(self, evaluators: Evaluators) -> None:
        """Compile, time and profile every plan."""
        default, *flagged = flagged_variants(self.target)
        with self.meter.programs(evaluators, self.parameters) as programs, programs.rewriting() as found:
            with seconds_of() as begin:
                first = programs.build(default)
                rewritten = found()
                first = programs.first(first)
            self.begin_s, self.sites = rounded(begin.seconds - first.build_s), rewritten.sites
            self._add(first, programs)
            for variant in (*flagged, *rewritten.variants):
                self._attempt(variant, programs)
            if self.target.cores > 1:
                self._in_calling_thread(programs)
        self._find_algorithms()

    def search(self, evaluators: Evaluators) -> bool:
        """Search all tasks; say whether all courses came to their end in time."""
        for setting, tasks in self.tasks.items():
            example = next(built for built in self.built.values() if _setting(built) == setting)
            program = replace(example, model=replace(example.model, tasks=tuple(tasks.values())))
            if not self._search(program, evaluators):
                return False
        return True

    def finish(self) -> EndCosts:
        """Emit the fastest program and say what that cost."""
        tuned = min((built for built in self.built.values() if built.timing is not None), key=self._reached_s)
        searches, built = self._searches(tuned), tuple(self.built.values())
        tried = [search for search in searches if search.history.records]
        known, ledger = len(self.store.work_costs()), self.courses[0].search.run.ledger
        finalists = self.meter.finalists(tried, tuned, END_S, ledger)
        costs = self.store.work_costs()[known:]
        variants = BuiltVariants(built, {}, (), ProgramSpace(tuple(each.variant.plan for each in built)))
        ledger.until = time.monotonic() + ledger.emission_s(built, tuned)  # sessions are cut to this in a run by time
        with seconds_of() as emission:
            self.meter.emission(variants, tuned, finalists, ledger)
        choice_s, report_s = (_median(costs, kind) for kind in (WorkKind.CHOICE, WorkKind.REPORT))
        return EndCosts(tuned.variant.name, choice_s, report_s, rounded(emission.seconds))

    def round_s(self) -> float:
        """Return the median seconds between pieces of work, as the first process measured them."""
        return self.store.decide("allocation-round-s", lambda: rounded(statistics.median(self._gaps_s)))

    def recorded_tasks(self) -> tuple[RecordedTask, ...]:
        """Return all tasks with their courses."""
        found = dict[str, RecordedTask]()
        for course in self.courses:
            for task in course.search.built.model.tasks:
                found.setdefault(task.key + course.mark, course.recorded(task))
        return tuple(found.values())

    def _reached_s(self, built: BuiltVariant) -> float:
        """Return the seconds that a plan's program is expected to take with the best scripts of all."""
        searches = self._searches(built)
        untuned_s = sum(search.task.weight * search.history.untuned.median_s for search in searches)
        tuned_s = sum(search.seconds_per_run() for search in searches)
        return with_scripts_s(built.call_s, untuned_s, tuned_s)

    def _searches(self, built: BuiltVariant) -> list[TaskSearch]:
        """Return the searches of a plan's tasks, with the plan's own tasks."""
        mark, tasks = _mark(built), {task.key: task for task in built.model.tasks}
        return [
            replace(search, task=tasks[search.task.key])
            for course in self.courses
            if course.mark == mark
            for search in course.search.searches
            if search.task.key in tasks
        ]

    def _attempt(self, variant: Variant, programs: Programs) -> None:
        default = next(iter(self.built.values()))
        with seconds_of() as built:
            attempt = programs.attempt(variant, default.model)
        if attempt.built is None:
            self.plans[variant.name] = RecordedPlan(variant.name, rounded(built.seconds), attempt.why)
            print(f"  {variant.name}: {attempt.why}")
        else:
            self._add(attempt.built, programs)

    def _add(self, built: BuiltVariant, programs: Programs) -> None:
        """Time and profile a plan, and note its tasks."""
        name, others = built.variant.name, list(self.built.values())[:1]
        with seconds_of() as look:
            (*_, timed), failed = programs.time([*others, built])
        with seconds_of() as profiling:
            timed = programs.profiled(timed)
        with seconds_of() as capture:
            timed = ValueRecorder.of(self.target, math.inf).with_values(timed)
        called = tuple(Called(task.key + _mark(built), task.name, task.weight) for task in timed.model.tasks)
        self.built[name] = timed
        self.tasks.setdefault(_setting(timed), {}).update({t.key: t for t in timed.model.tasks})
        self.plans[name] = RecordedPlan(
            name,
            rounded(built.build_s),
            failed.get(name, ""),
            program_hash(built.vmfb),
            called,
            timed.timing.median_s if timed.timing else None,
            rounded(timed.timing.ratio) if timed.timing else 1.0,
            rounded(look.seconds),
            rounded(profiling.seconds),
            {n: rounded(s) for n, s in timed.profile.seconds.items()} if timed.profile else None,
            rounded(capture.seconds),
        )
        print(f"  {name}: {len(called)} tasks, built in {built.build_s:.1f} s, {failed.get(name, '')}")

    def _in_calling_thread(self, programs: Programs) -> None:
        short = [b for b in self.built.values() if b.timing is not None and b.timing.median_s <= SHORT_S]
        for built in short:
            self._add(replace(built, variant=built.variant.in_calling_thread(), profile=None, build_s=0.0), programs)

    def _find_algorithms(self) -> None:
        default = next(iter(self.built.values()))
        algorithms = Algorithms(self.path, self.target, default, _never, self.sites, self.parameters)
        for name, built in self.built.items():
            with seconds_of() as looking:
                try:
                    found = algorithms.alternatives(built)
                except MlirSchedError as error:
                    print(f"  {name}: {reason(str(error))}")
                    continue
            made = [
                RecordedAlgorithm(a.site.name, a.gone, tuple(Called(t.key, t.name, t.weight) for t in a.made))
                for a in found
            ]
            self.plans[name] = replace(self.plans[name], algorithms=tuple(made), algorithms_s=rounded(looking.seconds))
            known = self.tasks[_setting(built)]
            for task in (task for each in found for task in each.made):
                known.setdefault(task.key, task)

    def _search(self, program: BuiltVariant, evaluators: Evaluators) -> bool:
        """Search the tasks of a program to the end of their courses; say whether that came in time."""
        options = TuneOptions(trials=10**6, threads=self.target.cores)  # more than all courses together
        method = SearchMethod.of("evolutionary", "xgboost", EvenScheduler(self.most))
        space, start, mark = Space.default(self.target), time.monotonic(), _mark(program)
        run = TuningRun.of(
            options, self.target, space, self.store, [program], start=start, method=method, drawn=self.meter.drawn
        )
        same = self._same(program.model.tasks, mark)
        search = CourseSearch(run, program, Quiet(print), wanted=partial(self._wanted, same=same.keys()))
        ended = start
        for work in search.work(Allowance(options.round_size, None, math.inf)):
            begun = time.monotonic()
            self._gaps_s.append(begun - ended)
            if begun > self.end:
                if len(self._gaps_s) >= ENOUGH_GAPS:
                    self.round_s()
                return False
            with run.ledger.counting(work.kind, work.task.key, work.count):
                work.run(evaluators.of(program))
            ended = time.monotonic()
        self.courses.append(SearchedTasks(search, self.store.work_costs(run.key), mark, same))
        return True

    def _same(self, tasks: Sequence[Task], mark: str) -> dict[str, str]:
        """Return the tasks, by key, that have the code of a task of an earlier course, and the key of that one."""
        code = {task.key: (mark, task.source, task.constants, task.reuse_bytes, task.numbers) for task in tasks}
        same = {key: self._by_code[known] for key, known in code.items() if known in self._by_code}
        self._by_code |= {known: key + mark for key, known in code.items() if known not in self._by_code}
        return same

    def _wanted(self, program: CourseSearch, same: Collection[str]) -> set[str]:
        """Return the keys of the tasks whose course goes on."""
        shares = self._shares(program)
        searches = [search for search in program.searches if search.task.key not in same]
        return {s.task.key for s in searches if s.tried < FEWEST or shares.get(s.task.key, 1.0) >= LIGHT}

    def _shares(self, program: CourseSearch) -> dict[str, float]:
        """Return the largest share of a program's time that tasks take in any of the plans; none for algorithms'."""
        call_s, setting, shares = program.call_s(), _setting(program.built), dict[str, float]()
        untuned = {each.task.key: each.history.untuned.median_s for each in program.searches}
        for built in self.built.values():
            if _setting(built) == setting and built.timing is not None:
                weights = {task.key: task.weight for task in built.model.tasks if task.key in call_s}
                own_s = {key: weight * call_s[key] for key, weight in weights.items()}
                rest_s = built.timing.median_s - sum(weight * untuned[key] for key, weight in weights.items())
                whole_s = max(0.0, rest_s) + sum(own_s.values())
                shares |= {key: max(shares.get(key, 0.0), each_s / whole_s) for key, each_s in own_s.items()}
        return shares


@dataclass
class Seconds:
    """Seconds that a block of code took."""

    seconds: float = 0.0


@contextmanager
def seconds_of() -> Iterator[Seconds]:
    """Measure a block of code."""
    start, found = time.monotonic(), Seconds()
    yield found
    found.seconds = time.monotonic() - start


def _mark(built: BuiltVariant) -> str:
    """Return what marks the keys of a variant's tasks."""
    return CALLING_THREAD if built.variant.plan.local_sync else ""


def _setting(built: BuiltVariant) -> tuple[tuple[str, ...], bool]:
    """Return what tasks of variants have to share to be searched together."""
    return built.model.task_flags, built.variant.plan.local_sync


def _median(costs: Sequence[WorkCost], kind: WorkKind) -> float:
    return rounded(statistics.median([c.seconds / c.count for c in costs if c.kind is kind] or [0.0]))


def _never() -> AbstractContextManager[Programs]:
    raise AssertionError("no program is composed")
