"""The search over the tasks of one program variant: a scheduler, one cost model, and rounds that can be resumed."""

from __future__ import annotations

import hashlib
import json
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mlir_sched.database import RecordStore
from mlir_sched.database.record import StoredTask, measuring_context
from mlir_sched.errors import IllegalTraceError, MlirSchedError
from mlir_sched.models import SharedCostModel, XGBoostModel
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.search import EvolutionarySearch, GradientScheduler, RandomSearch, Strategy
from mlir_sched.space.design_space import DesignSpace, Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.tuning.evaluator import Evaluator, UntunedError
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.progress import Progress, ProgressCallback
from mlir_sched.tuning.run_clock import RunClock
from mlir_sched.tuning.task_search import TaskSearch, is_measured, untuned_timing
from mlir_sched.version import __version__

FIRST_ROUND = 2
"""Least candidates of a task's first round; the tasks share a batch in their first rounds, so that a small budget
reaches all of them. What is tried does not depend on the budget, so that a larger one goes on where it ended."""
EXCHANGE = 3
"""Most tasks that try what has just been found for another one, and most such traces that a task starts from."""


NO_TIME = "no time was left to measure it"
"""Why a dispatch stays as it is in a short run by time."""


@dataclass(frozen=True)
class Limit:
    """Where a search stops: after so many candidates in all, or so many seconds after the run's start.

    Attributes:
        trials: Candidates, those of earlier calls included.
        seconds: Seconds on the run's clock; used when ``trials`` is None.
        ended: Where a search by seconds ended when it was done first, in candidates; a resumed run ends it there.
    """

    trials: int | None = None
    seconds: float = 0.0
    ended: int | None = None


@dataclass
class SearchRun:
    """One run of the search over the tasks of a variant; it can be stopped at a limit and go on to a further one.

    Attributes:
        clock: Counts the seconds of the whole run, those of other variants included.
        generation: How often the user asked for a fresh start in this store.
        limit: Where the whole run ends, for the progress report.
        shares: Part of the untuned program's time that tasks take, by name; the order in which they are begun.
        others: The runs on other variants that the budget is shared with.
    """

    options: TuneOptions
    target: Target
    space: Space
    store: RecordStore
    tasks: Sequence[Task]
    clock: RunClock
    progress: ProgressCallback
    start_from: Sequence[Trace] = ()
    generation: int = 0
    limit: Limit = field(default_factory=Limit)
    shares: Mapping[str, float] = field(default_factory=dict)
    others: Sequence[SearchRun] = field(default=(), repr=False)
    searches: list[TaskSearch] = field(default_factory=list)
    untunable: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    _internal_errors: list[str] = field(default_factory=list)
    _model: SharedCostModel | None = None
    _run_key: str = ""
    _context: str = ""
    _stored: tuple[int, int] = (0, 0)  # rounds that were begun before a resume, and candidates tried in them
    _scheduler: GradientScheduler = field(default_factory=GradientScheduler)

    def search(self, evaluator: Evaluator, limit: Limit) -> None:
        """Run rounds until the limit, until nothing is left to try, or until the user interrupts."""
        try:
            if self._model is None:
                self._start()
            self._measure_untuned(evaluator, limit)
            self._start_from_finds()
            while (count := self._next_count(limit)) and (
                index := self._scheduler.next_task([s.progress() for s in self.searches])
            ) is not None:
                stage = f"tuning {self.searches[index].task.name}"
                self.progress(self.state(stage))
                search = self.searches[index]
                before = search.best_trace()
                self._save_round(self._rounds)
                search.run_round(self.options.batch, count, evaluator)
                self._save_round(self._rounds - 1)
                if (found := search.best_trace()) is not None and found != before:
                    self._exchange(found, search, evaluator, limit)
                    self._save_round(self._rounds - 1)
                self.clock.save()
                self.progress(self.state(stage))
            self._save_model()
        except KeyboardInterrupt:
            self.interrupted = True
        self.clock.save()

    @property
    def trials(self) -> int:
        """Candidates tried so far."""
        return sum(search.tried for search in self.searches)

    @property
    def elsewhere(self) -> int:
        """Candidates tried so far on other variants."""
        return sum(run.trials for run in self.others)

    def internal_errors(self) -> list[str]:
        """Return the tracebacks of mistakes of ours that cost a candidate or a dispatch."""
        return self._internal_errors + [text for search in self.searches for text in search.internal_errors()]

    def saved_s(self) -> float:
        """Return the seconds that the best scripts so far save per run of the model."""
        gains = ((s, s.best_seconds()) for s in self.searches)
        return sum(s.task.weight * (s.untuned.median_s - best) for s, best in gains if best is not None)

    def state(self, stage: str) -> Progress:
        """Return the state for the progress callback."""
        elapsed = self.clock.here_s()
        tried = self.trials + self.elsewhere
        left: float | None = None
        if self.limit.trials is None:
            left = max(0.0, self.limit.seconds - self.clock.spent_s())
        elif tried:
            left = elapsed / tried * max(0, self.limit.trials - tried)
        failures: Counter[str] = Counter()
        for search in self.searches:
            failures += search.failures()
        best = {search.task.name: search.best_ratio() for search in self.searches}
        return Progress(stage, tried, self.limit.trials or 0, elapsed, left, best, dict(failures))

    def _exchange(self, found: Trace, source: TaskSearch, evaluator: Evaluator, limit: Limit) -> None:
        """Try the new best trace of a task on the tasks that it fits, those that take the most time first.

        Tasks that had no round yet start from it.
        """
        others = [search for search in self.searches if search is not source and not search.exhausted]
        others.sort(key=TaskSearch.seconds_per_run, reverse=True)
        tried = 0
        for search in others:
            trace = search.fitted(found)
            if trace is None:
                continue
            if not search.best_s:
                search.start_from.append(trace)
            elif tried < EXCHANGE and self._next_count(limit):
                search.try_traces([trace], evaluator)
                tried += 1

    def _start(self) -> None:
        """Find out what is known of this run: a resumed one sees the records that the interrupted one saw."""
        self._context = measuring_context(self.target, generation=self.generation)
        self._model = SharedCostModel(XGBoostModel())
        self._run_key = self._key()
        self.store.add_run(self._run_key, {"last_record": self.store.last_record()})
        rounds = self.store.rounds(self._run_key)
        self._stored = len(rounds), int(rounds[-1]["trials"]) if rounds else 0

    def _measure_untuned(self, evaluator: Evaluator, limit: Limit) -> None:
        """Measure the untuned dispatches that have no search yet, those with the largest share of the time first.

        By time, no further one is measured when half of what is left until the limit is spent.
        """
        until_s = None if limit.trials is not None else (self.clock.spent_s() + limit.seconds) / 2
        known = {search.task.key for search in self.searches}
        numbered = sorted(enumerate(self.tasks), key=lambda pair: -self.shares.get(pair[1].name, 0.0))
        for index, task in numbered:
            if task.key in known or self.untunable.get(task.key, NO_TIME) != NO_TIME:
                continue
            late = until_s is not None and self.clock.spent_s() > until_s
            if late and not is_measured(task, self.store, self._context):
                self.untunable[task.key] = NO_TIME
                continue
            self.untunable.pop(task.key, None)
            self._add_search(index, task, evaluator)
        self.searches.sort(key=TaskSearch.seconds_per_run, reverse=True)

    def _add_search(self, index: int, task: Task, evaluator: Evaluator) -> None:
        """Measure the untuned code of a task and begin to search, or note why the task stays as it is."""
        self.store.add_task(StoredTask.of(task, self.target))
        try:
            untuned = untuned_timing(task, self.store, self._context, self.options.seed, evaluator)
        except UntunedError as error:
            self.untunable[task.key] = str(error)
            if error.__cause__ and not isinstance(error.__cause__, MlirSchedError):
                self._internal_errors.append("".join(traceback.format_exception(error)))
            return
        assert task.dispatch is not None
        space = DesignSpace(self.space, task.dispatch, self.target)
        strategy = self._strategy(space, np.random.default_rng([abs(self.options.seed), index]))
        search = TaskSearch(task, space, strategy, self.store, self._context, self.options.seed, untuned)
        search.start_from = self._starts_in(space)
        settings = self.store.run_settings(self._run_key)
        assert settings is not None
        search.warm_start(settings["last_record"])
        self.searches.append(search)
        self.progress(self.state("measuring the untuned dispatches"))

    def _start_from_finds(self) -> None:
        """Have every task go on from what was found for the same ops on other variants, else for the heaviest tasks."""
        runs = (self, *self.others)
        found = [(search, trace) for run in runs for search in run.searches if (trace := search.best_trace())]
        found.sort(key=lambda pair: pair[0].seconds_per_run(), reverse=True)
        for search in self.searches:
            same = [pair for pair in found if pair[0].task.dispatch == search.task.dispatch]
            for _, trace in [*same, *found][:EXCHANGE]:
                if (fitted := search.fitted(trace)) is not None:
                    search.start_from.append(fitted)

    def _strategy(self, space: DesignSpace, rng: np.random.Generator) -> Strategy:
        if self.options.strategy == "random":
            return RandomSearch(space, rng)
        assert self._model is not None
        return EvolutionarySearch(space, rng, self._model, self.options.evolution)

    def _starts_in(self, space: DesignSpace) -> list[Trace]:
        """Return the traces to start from that a space knows, repaired where they were made for another one."""
        starts: dict[str, Trace] = {}
        for trace in self.start_from:
            try:
                repaired = space.replay(trace)
            except IllegalTraceError:
                continue
            starts.setdefault(repaired.key, repaired)
        return list(starts.values())

    def _key(self) -> str:
        identity = [
            [task.key for task in self.tasks],
            [
                [sketch.name for sketch in self.space.sketches(task.dispatch, self.target)]
                for task in self.tasks
                if task.dispatch
            ],
            self._context,
            self.options.seed,
            self.options.batch,
            self.options.strategy,
            repr(self.options.evolution),
            __version__,
            *(trace.key for trace in self.start_from),
        ]
        return "run-" + hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]

    @property
    def _rounds(self) -> int:
        return sum(len(search.best_s) for search in self.searches)

    def _save_round(self, index: int) -> None:
        """Keep how many candidates were tried when a round began, or up to its end."""
        if (index + 1, self.trials) > self._stored:
            self.store.save_round(self._run_key, index, {"trials": self.trials})

    def _save_model(self) -> None:
        """Keep the cost model beside the records it was fitted to, under the key of the run."""
        if self._model is None or not self._model.fitted:
            return
        with temporary_folder() as folder:
            path = Path(folder) / "model"
            self._model.save(path)
            self.store.save_model(self._run_key, path.read_bytes())

    def _next_count(self, limit: Limit) -> int:
        """Return how many candidates the next round may try; 0 at the limit."""
        if limit.trials is None:
            return self.options.batch if self._has_time(limit) else 0
        left = max(0, limit.trials - self.trials)
        if any(not search.best_s and not search.exhausted for search in self.searches):
            left = min(left, max(FIRST_ROUND, self.options.batch // len(self.searches)))
        return min(self.options.batch, left)

    def _has_time(self, limit: Limit) -> bool:
        """Say whether a search by seconds goes on; a resumed one ends what it had begun, however long that took."""
        if limit.ended is not None:
            return self.trials < limit.ended
        begun = self._rounds < self._stored[0] or self.trials < self._stored[1]
        return begun or self.clock.spent_s() < limit.seconds
