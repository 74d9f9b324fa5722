"""Tuning a model, start to end: variants, tasks, search rounds, finalists, emission, end-to-end proof."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mlir_sched import __version__
from mlir_sched.database import RecordStore
from mlir_sched.errors import UserError
from mlir_sched.evaluate import CompileAndRun, Evaluator, UntunedError
from mlir_sched.export import Emission, Winner, choose_finalists, emit, write_summary
from mlir_sched.models import SharedCostModel, XGBoostModel
from mlir_sched.progress import Progress, ProgressCallback, silent
from mlir_sched.record import StoredTask, context_key, describe
from mlir_sched.report import Curve, write_report
from mlir_sched.result import DispatchResult, TuneResult
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.search import EvolutionarySearch, GradientScheduler, RandomSearch, Strategy
from mlir_sched.space import DesignSpace, Space
from mlir_sched.target import Target
from mlir_sched.targets import detect_target
from mlir_sched.task import Task
from mlir_sched.task_search import TaskSearch, untuned_timing
from mlir_sched.transform_scripts.module import TransformModule
from mlir_sched.variants import BuiltVariant, build_variants, can_tune, variant_to_tune

DEFAULT_TRIALS_PER_TASK = 64
"""Budget when none is given. Source: one batch of MetaSchedule (``num_trials_per_iter``)."""
STRATEGIES = ("evolutionary", "random")


@dataclass(frozen=True)
class TuneOptions:
    """What a user decides about a run.

    Attributes:
        target: What to compile for.
        trials: Candidates to try over all tasks; by default 64 per task that can be tuned, unless minutes are given.
        minutes: Wall-clock minutes for the search; emission and its checks come on top.
        seed: Seed of every choice of the search.
        threads: Threads the tuned program will run on.
        batch: Candidates per round; a round is compiled, then timed.
        strategy: ``evolutionary`` (with the cost model) or ``random``.
        fresh: Start anew: no record of an earlier run is used.
    """

    target: str = "llvm-cpu"
    trials: int | None = None
    minutes: float | None = None
    seed: int = 0
    threads: int = 1
    batch: int = 16
    strategy: str = "evolutionary"
    fresh: bool = False

    def __post_init__(self) -> None:
        if self.trials is not None and self.minutes is not None:
            raise UserError("give a budget in trials or in minutes, not both")
        for name in ("trials", "minutes", "batch"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UserError(f"{name} must be above 0, but got {value}")
        if self.strategy not in STRATEGIES:
            raise UserError(f"unknown strategy {self.strategy!r}; known are {', '.join(STRATEGIES)}")
        if not -(2**63) <= self.seed < 2**63:
            raise UserError(f"the seed must fit 64 bits, but got {self.seed}")


def tune(
    model: str | Path,
    output: str | Path | None = "tuned",
    *,
    options: TuneOptions | None = None,
    store: str | Path | None = None,
    space: Space | None = None,
    modules: Sequence[TransformModule] = (),
    progress: ProgressCallback = silent,
) -> TuneResult:
    """Tune a model for this machine and write a folder that a plain ``iree-compile @tuned/flags.txt`` uses.

    Args:
        model: Any program that ``iree-compile`` reads.
        output: Folder to write; None writes nothing.
        options: Budget, seed, target and so on.
        store: Record store (SQLite file or SQLAlchemy URL); by default ``records.sqlite`` in the output folder.
        space: Transform modules; by default ``Space.default(target)``.
        modules: Further transform modules, put at the front of the space in their order.
        progress: Called often with the state of the run.

    Returns:
        What was found. Every emitted script is proven applied, its numbers are checked, and the emitted program is
        no slower than the untuned one.

    Raises:
        UserError: The input is at fault; nothing that was measured is lost.
    """
    options = options or TuneOptions()
    folder = None if output is None else prepare_folder(Path(output))
    start = time.monotonic()
    path = Path(model)
    progress(Progress("detecting the target"))
    target = detect_target(options.target, options.threads)
    space = Space([*modules, *(space or Space.default(target)).modules])
    with RecordStore.open(store or default_store(folder)) as records:
        progress(Progress("compiling and timing the untuned program"))
        with Runner(RunnerOptions(threads=options.threads, seed=options.seed)) as runner:
            variants = build_variants(path, target, runner)
        variant = variant_to_tune(variants, space, target)
        tasks = [task for task in variant.model.tasks if can_tune(task, space, target)]
        _require_tunable(path, variant, tasks, space)
        run = Run(options, target, space, records, tasks, start, progress)
        with CompileAndRun(variant.model.flags, RunnerOptions(threads=options.threads, seed=options.seed)) as evaluator:
            run.search(evaluator)
            progress(run.state("measuring the finalists"))
        finalists = choose_finalists([s for s in run.searches if s.measured or s.records], options.threads)
        progress(run.state("emitting and measuring the program"))
        emission = emit(folder, path, variants, variant, finalists, options.threads, target)
        result = run.result(path, variant, emission, folder)
        if folder is not None:
            write_summary(folder, result)
            write_report(folder, result, [Curve(s.task.name, s.ratios()) for s in run.searches])
        return result


def prepare_folder(folder: Path) -> Path:
    """Make the output folder and prove that it can be written.

    Raises:
        UserError: It cannot.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UserError(f"{folder}: cannot write the output folder: {error.strerror or error}") from error
    return folder.resolve()


def default_store(folder: Path | None) -> Path:
    """Return where records go when the user did not say."""
    return (folder or Path.cwd()) / "records.sqlite"


def _require_tunable(path: Path, variant: BuiltVariant, tasks: Sequence[Task], space: Space) -> None:
    if tasks:
        return
    reasons = [
        f"{task.name}: {task.not_tunable or 'no transform module schedules ' + _ops(task)}"
        for task in variant.model.tasks
    ]
    names = ", ".join(module.name for module in space.modules)
    shown = "; ".join(reasons[:3]) + (f"; and {len(reasons) - 3} more" if len(reasons) > 3 else "")
    raise UserError(f"{path}: no dispatch can be tuned ({shown}); the transform modules are {names}")


def _ops(task: Task) -> str:
    return describe(task.dispatch) if task.dispatch else "it"


@dataclass
class Run:
    """One run of the search over all tasks of a model."""

    options: TuneOptions
    target: Target
    space: Space
    store: RecordStore
    tasks: Sequence[Task]
    start: float
    progress: ProgressCallback
    searches: list[TaskSearch] = field(default_factory=list)
    untunable: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    _model: SharedCostModel | None = None
    _earlier_s: float = 0.0

    def search(self, evaluator: Evaluator) -> None:
        """Run rounds until the budget is spent, nothing is left to try, or the user interrupts."""
        try:
            self._start(evaluator)
            scheduler = GradientScheduler()
            while (count := self._next_count()) and (
                index := scheduler.next_task([s.progress() for s in self.searches])
            ) is not None:
                self.searches[index].run_round(count, evaluator)
                self._save_round()
                self.progress(self.state(f"tuning {self.searches[index].task.name}"))
        except KeyboardInterrupt:
            self.interrupted = True

    @property
    def trials(self) -> int:
        """Candidates tried so far."""
        return sum(search.tried for search in self.searches)

    @property
    def budget(self) -> int:
        """Candidates to try; 0 when the budget is in minutes."""
        if self.options.minutes is not None:
            return 0
        return self.options.trials or DEFAULT_TRIALS_PER_TASK * max(1, len(self.searches))

    def state(self, stage: str) -> Progress:
        """Return the state for the progress callback."""
        elapsed = time.monotonic() - self.start
        left: float | None = None
        if self.options.minutes is not None:
            left = max(0.0, self.options.minutes * 60 - self._spent_s())
        elif self.trials:
            left = elapsed / self.trials * max(0, self.budget - self.trials)
        failures: Counter[str] = Counter()
        for search in self.searches:
            failures += search.failures()
        best = {search.task.name: search.best_ratio() for search in self.searches}
        return Progress(stage, self.trials, self.budget, elapsed, left, best, dict(failures))

    def result(self, path: Path, variant: BuiltVariant, emission: Emission, folder: Path | None) -> TuneResult:
        """Return the result of the run."""
        searches = {search.task.key: search for search in self.searches}
        return TuneResult(
            model=str(path),
            target=self.target.backend,
            threads=self.options.threads,
            seed=self.options.seed,
            trials=self.trials,
            measured=sum(search.measured for search in self.searches),
            seconds=time.monotonic() - self.start,
            interrupted=self.interrupted,
            program=emission.program,
            dispatches=tuple(
                self._dispatch(task, searches.get(task.key), emission.winners.get(task.key), emission)
                for task in variant.model.tasks
            ),
            output=None if folder is None else str(folder),
            store=self.store.name,
            model_accuracy=self._accuracy(),
            versions={"mlir-sched": __version__, "iree-compiler": self.target.compiler, "numpy": np.__version__},
        )

    def _start(self, evaluator: Evaluator) -> None:
        generation = self._generation()
        context = context_key(threads=self.options.threads, generation=generation)
        self._model = SharedCostModel(XGBoostModel())
        for index, task in enumerate(self.tasks):
            self.store.add_task(StoredTask.of(task, self.target))
            try:
                untuned = untuned_timing(task, self.store, context, self.options.seed, evaluator)
            except UntunedError as error:
                self.untunable[task.key] = str(error)
                continue
            assert task.dispatch is not None
            space = DesignSpace(self.space, task.dispatch, self.target)
            strategy = self._strategy(space, np.random.default_rng([abs(self.options.seed), index]))
            self.searches.append(TaskSearch(task, space, strategy, self.store, context, self.options.seed, untuned))
            self.progress(self.state("measuring the untuned dispatches"))
        self._warm_start(context)

    def _strategy(self, space: DesignSpace, rng: np.random.Generator) -> Strategy:
        if self.options.strategy == "random":
            return RandomSearch(space, rng)
        assert self._model is not None
        return EvolutionarySearch(space, rng, self._model)

    def _generation(self) -> int:
        """Return how often the user asked for a fresh start in this store."""
        fresh = [key for key in self.store.runs() if key.startswith("fresh-")]
        if self.options.fresh:
            self.store.add_run(f"fresh-{len(fresh)}", {})
            return len(fresh) + 1
        return len(fresh)

    def _warm_start(self, context: str) -> None:
        """Use the records that were there when this run was first started, and no later ones.

        A resumed run then sees what the interrupted one saw, suggests the same candidates and finds their records.
        """
        self._run_key = self._key(context)
        settings = self.store.run_settings(self._run_key)
        if settings is None:
            known = {
                search.task.key: [r.candidate_key for r in self.store.records(search.task.key, context) if r.trace]
                for search in self.searches
            }
            settings = {"known": known}
            self.store.add_run(self._run_key, settings)
        for search in self.searches:
            search.warm_start(settings["known"].get(search.task.key, []))
        self._earlier_s = sum(r.get("seconds", 0.0) for r in self.store.rounds(self._run_key)[-1:])

    def _key(self, context: str) -> str:
        identity = [
            [search.task.key for search in self.searches],
            [search.space.sketches for search in self.searches],
            context,
            self.options.seed,
            self.options.batch,
            self.options.strategy,
            __version__,
        ]
        return "run-" + hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]

    def _save_round(self) -> None:
        index = sum(len(search.best_s) for search in self.searches) - 1
        self.store.save_round(self._run_key, index, {"seconds": self._spent_s(), "trials": self.trials})

    def _spent_s(self) -> float:
        """Return the seconds spent on this run, those before a resume included."""
        return self._earlier_s + time.monotonic() - self.start

    def _next_count(self) -> int:
        """Return how many candidates the next round may try; 0 when the budget is spent."""
        if self.options.minutes is not None:
            return self.options.batch if self._spent_s() < self.options.minutes * 60 else 0
        return max(0, min(self.options.batch, self.budget - self.trials))

    def _accuracy(self) -> float | None:
        judged = [
            a for s in self.searches if isinstance(s.strategy, EvolutionarySearch) for a in s.strategy.rank_accuracy
        ]
        return float(np.mean(judged)) if judged else None

    def _dispatch(
        self, task: Task, search: TaskSearch | None, winner: Winner | None, emission: Emission
    ) -> DispatchResult:
        note = (
            "" if winner else emission.notes.get(task.key, "") or self.untunable.get(task.key, "") or task.not_tunable
        )
        if search is None and not note:
            note = f"no transform module schedules {_ops(task)}"
        return DispatchResult(
            name=task.name,
            description=_ops(task) if task.dispatch else "",
            task_key=task.key,
            weight=task.weight,
            untuned=search.untuned if search else None,
            tuned=winner.timing if winner else None,
            symbol=winner.symbol if winner else "",
            sketch=winner.trace.sketch if winner else "",
            decisions=dict(winner.trace.values) if winner else None,
            trials=search.tried if search else 0,
            failures=dict(search.failures()) if search else None,
            note=note,
        )
