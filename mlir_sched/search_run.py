"""The search over all tasks of a model: a budget, a scheduler, one cost model, and rounds that can be resumed."""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mlir_sched import __version__
from mlir_sched.database import RecordStore
from mlir_sched.errors import IllegalTraceError
from mlir_sched.evaluate import Evaluator, UntunedError
from mlir_sched.models import SharedCostModel, XGBoostModel
from mlir_sched.options import DEFAULT_TRIALS_PER_TASK, TuneOptions
from mlir_sched.progress import Progress, ProgressCallback
from mlir_sched.record import StoredTask, context_key
from mlir_sched.search import EvolutionarySearch, GradientScheduler, RandomSearch, Strategy
from mlir_sched.space import DesignSpace, Space
from mlir_sched.target import Target
from mlir_sched.task import Task
from mlir_sched.task_search import TaskSearch, untuned_timing
from mlir_sched.trace import Trace


@dataclass
class SearchRun:
    """One run of the search over all tasks of a model."""

    options: TuneOptions
    target: Target
    space: Space
    store: RecordStore
    tasks: Sequence[Task]
    start: float
    progress: ProgressCallback
    start_from: Sequence[Trace] = ()
    searches: list[TaskSearch] = field(default_factory=list)
    untunable: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    _model: SharedCostModel | None = None
    _run_key: str = ""
    _earlier_s: float = 0.0
    _stored_rounds: int = 0

    def search(self, evaluator: Evaluator) -> None:
        """Run rounds until the budget is spent, nothing is left to try, or the user interrupts."""
        try:
            self._start(evaluator)
            scheduler = GradientScheduler()
            while (count := self._next_count()) and (
                index := scheduler.next_task([s.progress() for s in self.searches])
            ) is not None:
                stage = f"tuning {self.searches[index].task.name}"
                self.progress(self.state(stage))
                self.searches[index].run_round(self.options.batch, count, evaluator)
                self._save_round()
                self.progress(self.state(stage))
            self._save_model()
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
            search = TaskSearch(task, space, strategy, self.store, context, self.options.seed, untuned)
            search.start_from = self._starts_in(space)
            self.searches.append(search)
            self.progress(self.state("measuring the untuned dispatches"))
        self._warm_start(context)

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
        rounds = self.store.rounds(self._run_key)
        self._stored_rounds = len(rounds)
        self._earlier_s = float(rounds[-1]["seconds"]) if rounds else 0.0

    def _key(self, context: str) -> str:
        identity = [
            [search.task.key for search in self.searches],
            [search.space.sketches for search in self.searches],
            context,
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

    def _save_round(self) -> None:
        if self._rounds > self._stored_rounds:
            state = {"seconds": self._spent_s(), "trials": self.trials}
            self.store.save_round(self._run_key, self._rounds - 1, state)

    def _save_model(self) -> None:
        """Keep the cost model beside the records it was fitted to, under the key of the run."""
        if self._model is None or not self._model.fitted:
            return
        with tempfile.TemporaryDirectory(prefix="mlir-sched-") as folder:
            path = Path(folder) / "model"
            self._model.save(path)
            self.store.save_model(self._run_key, path.read_bytes())

    def _spent_s(self) -> float:
        """Return the seconds spent on this run, those before a resume included."""
        return self._earlier_s + time.monotonic() - self.start

    def _next_count(self) -> int:
        """Return how many candidates the next round may try; 0 when the budget is spent."""
        if self.options.minutes is not None:
            replaying = self._rounds < self._stored_rounds
            return self.options.batch if replaying or self._spent_s() < self.options.minutes * 60 else 0
        return max(0, min(self.options.batch, self.budget - self.trials))
