"""Collects a set: measures the candidates of its programs into a store, and writes a file of each task from it."""

import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from pathlib import Path

import numpy as np

from benchmarks.allocation.courses import seconds_each
from benchmarks.corpus.families import PROGRAMS
from benchmarks.corpus.sets import SETS, Part, Select
from benchmarks.folders import path_of
from benchmarks.search.enumeration import enumerate_traces
from mlir_sched.compiler.flags import task_flags
from mlir_sched.corpus import Corpus, MeasuredTask, Measurement, Origin
from mlir_sched.corpus.files import SHIPPED, SUFFIX, read_task, write_task
from mlir_sched.database import RecordStore
from mlir_sched.database.record import StoredTask, measuring_context
from mlir_sched.errors import UserError
from mlir_sched.evaluation.evaluator import CompileAndRun, Evaluator
from mlir_sched.evaluation.task_records import TaskRecords
from mlir_sched.models import SharedCostModel
from mlir_sched.payload import Dispatch
from mlir_sched.program.variants.tunability import can_tune
from mlir_sched.search import Acquisition, EvolutionaryOptions, EvolutionarySearch, SearchSpace
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks import TASK_FLAGS, extract
from mlir_sched.tasks.task import Task
from mlir_sched.text import say
from mlir_sched.text import seconds as duration
from mlir_sched.trace import Trace
from mlir_sched.tuning.ledger import Ledger
from mlir_sched.tuning.search_method import SearchMethod
from mlir_sched.tuning.task_history import TaskHistory
from mlir_sched.tuning.task_search import TaskSearch

SEED = 0
NEAR = 0.02
"""How much longer than the best of its task a candidate takes that is as good."""


class DrawnFirst(EvolutionarySearch):
    """An evolutionary search behind a number of random draws, which take the sketches in turn."""

    def __init__(
        self,
        space: SearchSpace,
        rng: np.random.Generator,
        model: SharedCostModel,
        drawn: int,
        options: EvolutionaryOptions | None = None,
    ) -> None:
        super().__init__(space, rng, model, options)
        self._drawn = drawn

    def propose(self, count: int) -> list[Trace]:
        """See :meth:`SearchStrategy.propose`."""
        left = self._drawn - len(self.observed)
        return self.sample_unseen(min(count, left), self.space.sketches) if left > 0 else super().propose(count)


@dataclass(frozen=True)
class Subject:
    """A task that has a file of its own.

    Attributes:
        name: Name of the file.
        program: Name of the program that the task is of.
        random, model: Candidates, as in ``CorpusSet``.
    """

    name: str
    program: str
    task: Task
    random: int
    model: int


@dataclass(frozen=True)
class Collection:
    """One set as it is collected on one machine.

    Attributes:
        name: The set's name.
        target: The machine, with the threads that programs run on.
        machine: Name of the machine's folder.
        store: Keeps what is measured; what it has is not measured again.
        output: Folder of the files; None for that of the set.
        select: What is measured behind random draws, in a set that has both.
    """

    name: str
    target: Target
    machine: str
    store: RecordStore
    output: Path | None = None
    select: Select = Select.FASTEST

    def collect(self, end: float) -> bool:
        """Measure what is missing and write the files; return whether that was done by ``end``, in monotonic seconds.

        A task that has its file is done.

        Raises:
            UserError: The files are of another machine, those of the set that this one follows are missing, or the set
                or this machine's design spaces have no part that is asked for.
        """
        asked = SETS[self.name]
        if self.select is not Select.FASTEST and not (asked.random and asked.model):
            raise UserError(f"{self.name} has no candidates that are selected behind random draws")
        self._require_own_files()
        missing = [program for program in asked.programs if not self._file(self.name, program).exists()]
        if not missing:
            return True
        self._file(self.name, "").parent.mkdir(parents=True, exist_ok=True)
        flags = task_flags((*self.target.flags, *TASK_FLAGS))
        with CompileAndRun(flags, asked.options(self.target)) as evaluator:
            for number, program in enumerate(missing, 1):
                for subject in self._subjects(program):
                    measured = self._measured(subject, evaluator, end)
                    if measured is None:
                        return False
                    write_task(self._file(self.name, subject.name), measured)
                    say(f"{subject.name} ({number} of {len(missing)}): {_summary(measured)}")
        return True

    def _file(self, name: str, program: str) -> Path:
        return (self.output or SETS[name].folder) / self.machine / name / f"{program}{SUFFIX}"

    def _require_own_files(self) -> None:
        for name in SETS:
            for path in sorted(self._file(name, "").parent.glob(f"*{SUFFIX}"))[:1]:
                if read_task(path).target.machine != self.target.machine:
                    raise UserError(f"{path} is of another machine: give this one another name (--machine)")

    def _subjects(self, program: str) -> list[Subject]:
        """Return the tasks of a program that have no file yet."""
        asked = SETS[self.name]
        if not asked.trials:
            return [Subject(program, program, task_of(PROGRAMS[program], self.target), asked.random, asked.model)]
        tasks = tasks_of(path_of(program), self.target)
        share = math.ceil(asked.trials / len(tasks))
        subjects = [Subject(f"{program}-{task.name}", program, task, 0, share) for task in tasks]
        return [subject for subject in subjects if not self._file(self.name, subject.name).exists()]

    def _measured(self, subject: Subject, evaluator: Evaluator, end: float) -> MeasuredTask | None:
        """Return a task's candidates, all of them measured; None where the time was too short."""
        asked, task, space = SETS[self.name], subject.task, Space.default(self.target)
        assert task.dispatch is not None
        design = DesignSpace(space, task.dispatch, self.target)
        starts, origin = self._starts(subject.program, design)
        self.store.add_task(StoredTask.of(task, self.target))
        context = measuring_context(self.target)
        stored = TaskRecords(self.store, task.key, context, SEED, sources=space.sources)
        untuned = stored.untuned() or stored.settle_untuned(evaluator.untuned(task))
        model, ledger = SearchMethod().shared_model(), Ledger(store=self.store, key=self.name)
        options = None
        if self.select is Select.UNCERTAINTY:
            options = EvolutionaryOptions(acquisition=Acquisition.UNCERTAINTY)
            self._teach(model, task.dispatch)
        strategy = DrawnFirst(design, np.random.default_rng(SEED), model, subject.random, options)
        search = TaskSearch(task, design, strategy, stored, TaskHistory(untuned), starts)
        wanted = len(starts) + subject.random + subject.model
        while search.tried < wanted and not search.exhausted:
            if time.monotonic() >= end:
                return None
            size = min(asked.round_size, wanted - search.tried)
            for work in search.round(size, size):
                with ledger.counting(work.kind, task.key, work.count):
                    work.run(evaluator)
        if search.stopped:
            raise UserError(f"{subject.name}: {search.stopped}")
        records = list(search.history.records.values())
        origins = [*[origin] * len(starts), *[Origin.RANDOM] * subject.random, *[Origin.MODEL] * subject.model]
        seconds = seconds_each(self.store.work_costs(self.name), task.key, len(records))
        measured = tuple(
            replace(Measurement.of(record, untuned.median_s, chosen), work_s=work_s or None)
            for record, chosen, work_s in zip(records, origins, seconds, strict=False)
            if record.outcome.is_lasting
        )
        known = task.key, subject.name, task.dispatch, self.target, context, untuned.median_s
        return MeasuredTask(*known, measured, complete=bool(asked.parts), weight=task.weight)

    def _teach(self, model: SharedCostModel, dispatch: Dispatch) -> None:
        """Have a model learn from all pools that there are, and from the set so far; not from those of a dispatch."""
        own = self._file(self.name, "").parent
        paths = {path.resolve() for path in (*SHIPPED.glob(f"*/pools/*{SUFFIX}"), *own.glob(f"*{SUFFIX}"))}
        for task in Corpus.of_files(sorted(paths)).tasks:
            if task.dispatch != dispatch:
                model.add_source(task.space, task.traces, task.seconds)

    def _starts(self, program: str, space: DesignSpace) -> tuple[Sequence[Trace], Origin]:
        """Return the candidates that are known before the first is measured, and why they are measured."""
        asked = SETS[self.name]
        if asked.parts:
            return whole_part(program, asked.parts[program], space), Origin.RANDOM
        if not asked.best_of:
            return (), Origin.GIVEN
        path = self._file(asked.best_of, program)
        if not path.exists():
            raise UserError(f"there is no {path}: collect {asked.best_of!r} first")
        valid = (each for each in read_task(path).legal if each.failure is None)
        return [each.trace for each in nsmallest(asked.best, valid, key=lambda each: each.seconds)], Origin.GIVEN


def whole_part(program: str, part: Part, space: DesignSpace) -> list[Trace]:
    """Return all candidates of a part of a program's design space, in random order.

    In the order of their decisions, neighbours would be measured one after the other, and a clock that changes with
    time would look like an effect of a decision.

    Raises:
        UserError: There are none.
    """
    traces = list(enumerate_traces(space, part.sketch, part.pinned))
    if not traces:
        values = ", ".join(f"{name} = {value}" for name, value in part.pinned.items())
        raise UserError(f"{program}: the design space of this machine has no candidate of {part.sketch} with {values}")
    return [traces[at] for at in np.random.default_rng(SEED).permutation(len(traces))]


def share_near_best(task: MeasuredTask) -> float:
    """Return the share of a task's candidates, failed ones too, that take at most :data:`NEAR` longer than the best.

    Where it is large, a random draw is as good as any search.
    """
    times = np.array([each.seconds for each in task.measured])
    return float(np.mean(times <= (1 + NEAR) * times.min())) if np.isfinite(times).any() else 0.0


def task_of(text: str, target: Target) -> Task:
    """Return the dispatch of a program that has most scalar operations, as a run tunes it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mlir"
        path.write_text(text)
        tasks = [task for task in extract(path, target, TASK_FLAGS).tasks if task.dispatch is not None]
    return max(tasks, key=lambda task: task.dispatch.scalar_ops if task.dispatch else 0)


def tasks_of(path: Path, target: Target) -> list[Task]:
    """Return the dispatches of a network that can have scripts, as a run without rewrites tunes them."""
    space = Space.default(target)
    return [task for task in extract(path, target, TASK_FLAGS).tasks if can_tune(task, space, target)]


def _summary(task: MeasuredTask) -> str:
    times = [each.seconds for each in task.measured if each.failure is None]
    best = f"untuned {duration(task.untuned_s)}, best {duration(min(times))}" if times else "none is valid"
    near = f", {share_near_best(task):.1%} within {NEAR:.0%} of the best"
    return f"{len(task.measured)} candidates, {len(task.measured) - len(times)} failed, {best}{near}"
