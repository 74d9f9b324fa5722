"""Searches a program in every space with every seed, then measures all best scripts in one interleaved session."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.search.composition.rows import Best, Row
from benchmarks.search.composition.spaces import NamedSpace
from mlir_sched.compiler import CompilerPool
from mlir_sched.database import RecordStore
from mlir_sched.database.record import Record, StoredTask, measuring_context
from mlir_sched.emission.acceptance import MIN_GAIN
from mlir_sched.emission.final_measurement import compile_scripts, measure_compiled
from mlir_sched.evaluation.evaluator import CompileAndRun, Evaluator, UntunedError
from mlir_sched.evaluation.task_records import TaskRecords
from mlir_sched.models import SharedCostModel, XGBoostModel
from mlir_sched.outcome import Timing
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.search import EvolutionarySearch, GradientScheduler
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.targets.target import Target
from mlir_sched.tasks import extract
from mlir_sched.tasks.task import Task
from mlir_sched.tuning.task_history import TaskHistory
from mlir_sched.tuning.task_search import TaskSearch


@dataclass(frozen=True)
class Setting:
    """How spaces are compared.

    Attributes:
        target: The target to compile for; its ``cores`` are the threads.
        spaces: The spaces, from the smallest to the whole one.
        trials: Trials per program, space and seed.
        seeds: Number of searches per space.
        round_size: Candidates per round.
        store: Store of outcomes: a candidate that several spaces or seeds try is measured once.
    """

    target: Target
    spaces: tuple[NamedSpace, ...]
    trials: int
    seeds: int
    round_size: int
    store: RecordStore


@dataclass(frozen=True)
class Found:
    """The outcome of one search.

    Attributes:
        records: Best record by task key; tasks without a valid candidate are missing.
        trials: Candidates tried.
        failed: Candidates that failed.
    """

    records: Mapping[str, Record]
    trials: int
    failed: int


def compose(path: Path, setting: Setting, say: Callable[[str], None]) -> Row:
    """Return the results of all spaces and seeds for a program.

    Raises:
        UserError: IREE cannot compile the program.
        UntunedError: No dispatch of the program can be tuned, or one cannot be run alone.
    """
    target, spaces = setting.target, setting.spaces
    model = extract(path, target)
    whole = spaces[-1].space
    tasks = [t for t in model.tasks if t.dispatch is not None and whole.sketches(t.dispatch, target)]
    if not tasks:
        raise UntunedError(f"{path}: no dispatch can be tuned")
    found: dict[tuple[str, int], Found] = {}
    with CompileAndRun(model.flags, RunnerOptions.for_device(target.driver, threads=target.cores)) as evaluator:
        for named in spaces:
            for seed in range(setting.seeds):
                found[named.name, seed] = search(tasks, named, seed, setting, evaluator)
                say(f"{path.stem}: {named.name}, seed {seed}")
    return _measured(path.stem, tasks, found, setting)


def search(tasks: Sequence[Task], named: NamedSpace, seed: int, setting: Setting, evaluator: Evaluator) -> Found:
    """Search all tasks of a program in one space, as a tuning run does."""
    target, store = setting.target, setting.store
    context = measuring_context(target)
    model = SharedCostModel(XGBoostModel())
    searches: list[TaskSearch] = []
    for index, task in enumerate(tasks):
        assert task.dispatch is not None
        space = DesignSpace(named.space, task.dispatch, target)
        if space.sketches:
            store.add_task(StoredTask.of(task, target))
            stored = TaskRecords(store, task.key, context, seed)
            untuned = stored.untuned() or stored.settle_untuned(evaluator.untuned(task))
            strategy = EvolutionarySearch(space, np.random.default_rng([seed, index]), model)
            searches.append(TaskSearch(task, space, strategy, stored, TaskHistory(untuned)))
    scheduler, tried = GradientScheduler(), 0
    while tried < setting.trials:
        following = scheduler.next_task([s.progress() for s in searches])
        if following is None:
            break
        for work in searches[following].round(setting.round_size, setting.trials - tried):
            work.run(evaluator)
        tried = sum(s.tried for s in searches)
    best = {s.task.key: _with_script(fastest, s.space) for s in searches if (fastest := next(s.history.ranked(), None))}
    return Found(best, tried, sum(sum(s.history.failures().values()) for s in searches))


def _with_script(record: Record, space: DesignSpace) -> Record:
    """Return a record of a history, which keeps no scripts, with the script that its trace produces."""
    assert record.trace is not None
    return replace(record, script=space.script(record.trace))


def _measured(name: str, tasks: Sequence[Task], found: Mapping[tuple[str, int], Found], setting: Setting) -> Row:
    """Measure the best scripts of all searches in one session, and return the program's row."""
    driver, threads = setting.target.driver, setting.target.cores
    untuned: dict[str, Timing] = {}
    timings: dict[tuple[str, str], Timing] = {}
    with CompilerPool(tasks[0].flags) as pool, Runner(RunnerOptions.final(driver, threads=threads)) as runner:
        for task in tasks:
            best = {f.records[task.key].script for f in found.values() if task.key in f.records}
            scripts = sorted(best)
            (compiled,) = compile_scripts([(task, scripts)], pool)
            untuned[task.key], results = measure_compiled(task, compiled, range(len(scripts)), runner)
            for script, result in zip(scripts, results, strict=True):
                if result.timing is not None:
                    timings[task.key, script] = result.timing
    cells = {
        named.name: tuple(
            _best(tasks, named, found[named.name, seed], untuned, timings, setting.target)
            for seed in range(setting.seeds)
        )
        for named in setting.spaces
    }
    return Row(name, sum(t.weight * untuned[t.key].median_s for t in tasks), cells)


def _best(
    tasks: Sequence[Task],
    named: NamedSpace,
    found: Found,
    untuned: Mapping[str, Timing],
    timings: Mapping[tuple[str, str], Timing],
    target: Target,
) -> Best:
    seconds = 0.0
    sketches: dict[str, str] = {}
    modules: set[str] = set()
    for task in tasks:
        record = found.records.get(task.key)
        timing = None if record is None else timings.get((task.key, record.script))
        ratio = 1.0
        if record is not None and record.trace is not None and timing is not None:
            assert task.dispatch is not None
            ratio = timing.ratio
            sketches[task.name] = record.trace.sketch
            made = {sketch.name: sketch for sketch in named.space.sketches(task.dispatch, target)}
            if ratio >= MIN_GAIN:
                modules |= {step.module for step in made[record.trace.sketch].steps}
        seconds += task.weight * untuned[task.key].median_s / ratio
    return Best(seconds, sketches, tuple(sorted(modules)), found.trials, found.failed)
