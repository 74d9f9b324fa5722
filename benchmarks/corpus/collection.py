"""Collects a set: measures the candidates of its programs into a store, and writes a file of each program from it."""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path

import numpy as np

from benchmarks.corpus.families import PROGRAMS
from benchmarks.corpus.sets import SETS
from mlir_sched.compiler.flags import task_flags
from mlir_sched.corpus import MeasuredTask, Measurement, Origin
from mlir_sched.corpus.files import SUFFIX, read_task, write_task
from mlir_sched.database import RecordStore
from mlir_sched.database.record import StoredTask, measuring_context
from mlir_sched.errors import UserError
from mlir_sched.evaluation.evaluator import CompileAndRun, Evaluator
from mlir_sched.evaluation.task_records import TaskRecords
from mlir_sched.models import SharedCostModel
from mlir_sched.search import EvolutionarySearch, SearchSpace
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks import TASK_FLAGS, extract
from mlir_sched.tasks.task import Task
from mlir_sched.text import say
from mlir_sched.text import seconds as duration
from mlir_sched.trace import Trace
from mlir_sched.tuning.search_method import SearchMethod
from mlir_sched.tuning.task_history import TaskHistory
from mlir_sched.tuning.task_search import TaskSearch

ROUND_SIZE = 16
"""Candidates between two looks at the clock; what is measured of them is stored when all were timed."""
SEED = 0


class DrawnFirst(EvolutionarySearch):
    """The default search behind a number of random draws, which take the sketches in turn."""

    def __init__(self, space: SearchSpace, rng: np.random.Generator, model: SharedCostModel, drawn: int) -> None:
        super().__init__(space, rng, model)
        self._drawn = drawn

    def propose(self, count: int) -> list[Trace]:
        """See :meth:`SearchStrategy.propose`."""
        left = self._drawn - len(self.observed)
        return self.sample_unseen(min(count, left), self.space.sketches) if left > 0 else super().propose(count)


@dataclass(frozen=True)
class Collection:
    """One set as it is collected on one machine.

    Attributes:
        name: The set's name.
        target: The machine, with the threads that programs run on.
        machine: Name of the machine's folder.
        store: Keeps what is measured; what it has is not measured again.
        output: Folder of the files; None for that of the set.
    """

    name: str
    target: Target
    machine: str
    store: RecordStore
    output: Path | None = None

    def collect(self, end: float) -> bool:
        """Measure what is missing and write the files; return whether that was done by ``end``, in monotonic seconds.

        A program that has its file is done.

        Raises:
            UserError: The files are of another machine, or those of the set that this one follows are missing.
        """
        asked = SETS[self.name]
        self._require_own_files()
        missing = [program for program in asked.programs if not self._file(self.name, program).exists()]
        if not missing:
            return True
        self._file(self.name, "").parent.mkdir(parents=True, exist_ok=True)
        flags = task_flags((*self.target.flags, *TASK_FLAGS))
        with CompileAndRun(flags, asked.options(self.target)) as evaluator:
            for number, program in enumerate(missing, 1):
                measured = self._measured(program, evaluator, end)
                if measured is None:
                    return False
                write_task(self._file(self.name, program), measured)
                say(f"{program} ({number} of {len(missing)}): {_summary(measured)}")
        return True

    def _file(self, name: str, program: str) -> Path:
        return (self.output or SETS[name].folder) / self.machine / name / f"{program}{SUFFIX}"

    def _require_own_files(self) -> None:
        for name in SETS:
            for path in sorted(self._file(name, "").parent.glob(f"*{SUFFIX}"))[:1]:
                if read_task(path).target.machine != self.target.machine:
                    raise UserError(f"{path} is of another machine: give this one another name (--machine)")

    def _measured(self, program: str, evaluator: Evaluator, end: float) -> MeasuredTask | None:
        """Return a program's candidates, all of them measured; None where the time was too short."""
        asked, starts = SETS[self.name], self._starts(program)
        task, space = task_of(PROGRAMS[program], self.target), Space.default(self.target)
        assert task.dispatch is not None
        self.store.add_task(StoredTask.of(task, self.target))
        context = measuring_context(self.target)
        stored = TaskRecords(self.store, task.key, context, SEED, sources=space.sources)
        untuned = stored.untuned() or stored.settle_untuned(evaluator.untuned(task))
        design, model = DesignSpace(space, task.dispatch, self.target), SearchMethod().shared_model()
        strategy = DrawnFirst(design, np.random.default_rng(SEED), model, asked.random)
        search = TaskSearch(task, design, strategy, stored, TaskHistory(untuned), starts)
        wanted = len(starts) + asked.random + asked.model
        while search.tried < wanted and not search.exhausted:
            if time.monotonic() >= end:
                return None
            size = min(ROUND_SIZE, wanted - search.tried)
            for work in search.round(size, size):
                work.run(evaluator)
        if search.stopped:
            raise UserError(f"{program}: {search.stopped}")
        order = [*[Origin.GIVEN] * len(starts), *[Origin.RANDOM] * asked.random, *[Origin.MODEL] * asked.model]
        measured = tuple(
            Measurement.of(record, untuned.median_s, origin)
            for record, origin in zip(search.history.records.values(), order, strict=False)
            if record.outcome.is_lasting
        )
        return MeasuredTask(task.key, program, task.dispatch, self.target, context, untuned.median_s, measured)

    def _starts(self, program: str) -> Sequence[Trace]:
        """Return the candidates that are measured again."""
        asked = SETS[self.name]
        if not asked.best_of:
            return ()
        path = self._file(asked.best_of, program)
        if not path.exists():
            raise UserError(f"there is no {path}: collect {asked.best_of!r} first")
        valid = (each for each in read_task(path).legal if each.failure is None)
        return [each.trace for each in nsmallest(asked.best, valid, key=lambda each: each.seconds)]


def task_of(text: str, target: Target) -> Task:
    """Return the dispatch of a program that has most scalar operations, as a run tunes it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mlir"
        path.write_text(text)
        tasks = [task for task in extract(path, target, TASK_FLAGS).tasks if task.dispatch is not None]
    return max(tasks, key=lambda task: task.dispatch.scalar_ops if task.dispatch else 0)


def _summary(task: MeasuredTask) -> str:
    times = [each.seconds for each in task.measured if each.failure is None]
    best = f"untuned {duration(task.untuned_s)}, best {duration(min(times))}" if times else "none is valid"
    return f"{len(task.measured)} candidates, {len(task.measured) - len(times)} failed, {best}"
