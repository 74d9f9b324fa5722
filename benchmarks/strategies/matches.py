"""A match: several arms search the same task with the same seed, and what they found is timed side by side.

The arms share a store, so that a candidate has the same time in all of them, and one that was measured is not measured
again. The same command therefore goes on where it was stopped, even by kill -9.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.corpus.collection import task_of
from benchmarks.corpus.families import HELD_OUT
from benchmarks.kept import Kept
from benchmarks.strategies.arms import ARMS, Arm
from mlir_sched.compiler import CompilerPool
from mlir_sched.compiler.flags import task_flags
from mlir_sched.corpus import Corpus
from mlir_sched.database import RecordStore
from mlir_sched.database.record import Record, StoredTask, measuring_context
from mlir_sched.emission.final_measurement import compile_scripts, measure_compiled
from mlir_sched.errors import UserError
from mlir_sched.evaluation.evaluator import CompileAndRun, Evaluator
from mlir_sched.evaluation.task_records import TaskRecords
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks import TASK_FLAGS
from mlir_sched.tasks.task import Task
from mlir_sched.tuning.search_method import SearchMethod
from mlir_sched.tuning.task_history import TaskHistory
from mlir_sched.tuning.task_search import TaskSearch

FAMILY = {name: family for family, programs in HELD_OUT.items() for name in programs}
TASKS = tuple(name for names in zip(*HELD_OUT.values(), strict=True) for name in names)
"""The tasks, one of each family before the second of any."""
TIMED = (2, 8, 24, 64)
"""Trials after which the best candidate is timed again at the end, as far as there are as many."""


@dataclass(frozen=True)
class Course:
    """What one arm found in a match.

    Attributes:
        speedups: Speed-up over the untuned code of every candidate, in order, in the search; None where it failed.
        timed: Speed-up of the best candidate after :data:`TIMED` trials in the last session; None where none was valid.
        overhead_s: Seconds of the search that were not spent on compiling and timing.
    """

    speedups: tuple[float | None, ...]
    timed: tuple[float | None, ...]
    overhead_s: float


@dataclass(frozen=True)
class Match:
    """The courses of all arms, by name, on one task with one seed."""

    task: str
    family: str
    seed: int
    courses: Mapping[str, Course]


KEPT = Kept("match", Match, 1)


@dataclass(frozen=True)
class Setting:
    """How arms are compared.

    Attributes:
        target: This machine.
        arms: Their names.
        tasks: How many of :data:`TASKS` are searched.
        trials: Candidates of a search.
        seeds: How often every task is searched by every arm.
        round_size: Candidates of a round.
        files: The corpus.
        keep: Folder of the store and of matches that are done.
    """

    target: Target
    arms: tuple[str, ...]
    tasks: int
    trials: int
    seeds: int
    round_size: int
    files: tuple[Path, ...]
    keep: Path

    @property
    def timed(self) -> tuple[int, ...]:
        """Trials after which the best candidate is timed again at the end."""
        return tuple(trials for trials in TIMED if trials <= self.trials)

    def of_match(self) -> dict[str, Any]:
        """Return what has to be the same for a match that is done to count again."""
        corpus = sha256(b"".join(path.read_bytes() for path in self.files)).hexdigest()
        context = measuring_context(self.target)
        return {
            "arms": sorted(self.arms),
            "trials": self.trials,
            "round_size": self.round_size,
            "context": context,
            "corpus": corpus,
        }


def matches(setting: Setting) -> Iterator[Match]:
    """Yield the matches of every seed and task.

    Every arm is the first one in turn, from task to task and, of a task, from seed to seed.
    """
    target, corpus, asked = setting.target, Corpus.of_files(setting.files), setting.of_match()
    setting.keep.mkdir(parents=True, exist_ok=True)
    flags = task_flags((*target.flags, *TASK_FLAGS))
    options = RunnerOptions.for_device(target.driver, threads=target.cores)
    with RecordStore.open(setting.keep / "live.sqlite") as store, CompileAndRun(flags, options) as evaluator:
        for seed, (number, name) in product(range(setting.seeds), enumerate(TASKS[: setting.tasks])):
            file = setting.keep / f"{name}-{seed}.json"
            if (known := KEPT.read(file, asked)) is None:
                first = (seed + number) % len(setting.arms)
                arms = [*setting.arms[first:], *setting.arms[:first]]
                known = _Play(name, seed, number, setting, corpus, store, evaluator).match(arms)
                KEPT.write(file, known, asked)
            yield replace(known, courses={arm: known.courses[arm] for arm in setting.arms})


@dataclass(frozen=True)
class _Play:
    """A match that is played; ``number`` is the task's among :data:`TASKS`."""

    name: str
    seed: int
    number: int
    setting: Setting
    corpus: Corpus
    store: RecordStore
    evaluator: Evaluator

    def match(self, arms: Sequence[str]) -> Match:
        """Return what the arms found, which search in the given order."""
        target = self.setting.target
        task = _task(self.name, target)
        self.store.add_task(StoredTask.of(task, target))
        others = Corpus(tuple(each for each in self.corpus.tasks if each.dispatch != task.dispatch))
        searches, overheads_s = dict[str, TaskSearch](), dict[str, float]()
        for name in arms:
            searches[name], overheads_s[name] = self._searched(task, ARMS[name], others)
        best = {
            name: [_best(list(each.history.records.values())[:trials]) for trials in self.setting.timed]
            for name, each in searches.items()
        }
        again = _timed_again(searches[arms[0]], [each for found in best.values() for each in found if each], target)
        timed = {
            name: tuple(again[each.candidate_key] if each else None for each in found) for name, found in best.items()
        }
        courses = {
            name: Course(searches[name].history.ratios(), timed[name], overheads_s[name]) for name in self.setting.arms
        }
        return Match(self.name, FAMILY[self.name], self.seed, courses)

    def _searched(self, task: Task, arm: Arm, corpus: Corpus) -> tuple[TaskSearch, float]:
        """Return the search of an arm at its end, and the seconds that it took beside compiling and timing.

        Raises:
            UserError: The untuned code failed.
        """
        assert task.dispatch is not None
        setting, target, space = self.setting, self.setting.target, Space.default(self.setting.target)
        stored = TaskRecords(self.store, task.key, measuring_context(target), self.seed, sources=space.sources)
        untuned = stored.untuned() or stored.settle_untuned(self.evaluator.untuned(task))
        start, measuring_s = time.monotonic(), 0.0
        method = SearchMethod.of(arm.strategy, arm.cost_model, "gradient")
        design, model = DesignSpace(space, task.dispatch, target), method.shared_model()
        strategy = method.strategy_for(design, model, self.seed, self.number)
        search = TaskSearch(task, design, strategy, stored, TaskHistory(untuned))
        most, size = (arm.most, arm.most) if arm.most else (setting.trials, setting.round_size)
        arm.begin(search, model, corpus, size)
        while search.tried < most and not search.exhausted:
            for work in search.round(size, min(size, most - search.tried)):
                begun = time.monotonic()
                work.run(self.evaluator)
                measuring_s += time.monotonic() - begun
        if search.stopped:
            raise UserError(f"{self.name}: {search.stopped}")
        return search, time.monotonic() - start - measuring_s


@lru_cache
def _task(name: str, target: Target) -> Task:
    return task_of(HELD_OUT[FAMILY[name]][name], target)


def _best(records: Sequence[Record]) -> Record | None:
    """Return the fastest valid one of some records; None where none is valid."""
    return max((each for each in records if each.outcome.valid), key=_ratio, default=None)


def _ratio(record: Record) -> float:
    assert record.outcome.valid is not None
    return record.outcome.valid.ratio


def _timed_again(search: TaskSearch, records: Sequence[Record], target: Target) -> dict[str, float]:
    """Return the speed-ups of candidates, timed in turns in a new process, by key.

    A candidate that fails now keeps the speed-up of its search.
    """
    found = {record.candidate_key: record for record in records}
    if not found:
        return {}
    scripts = [search.space.script(record.trace) for record in found.values() if record.trace is not None]
    options, task = RunnerOptions.final(target.driver, threads=target.cores), search.task
    with CompilerPool(task.flags, chain_length=options.chain_length) as pool, Runner(options) as runner:
        (compiled,) = compile_scripts([(task, scripts)], pool)
        _, results = measure_compiled(task, compiled, range(len(scripts)), runner)
    pairs = zip(found.items(), results, strict=True)
    return {key: result.valid.ratio if result.valid else _ratio(record) for (key, record), result in pairs}
