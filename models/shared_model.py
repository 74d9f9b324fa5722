"""One cost model for all tasks of a search, with the measured rows that it learns from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mlir_sched.models.cost_model import CostModel, Feed, FloatArray, LoopGraph, Measured, ModelTask, Rows
from mlir_sched.models.metrics import pair_accuracy
from mlir_sched.trace import Trace


class Featured(Protocol):
    """The space of a task, as far as a model is fed from it."""

    def features(self, traces: Sequence[Trace]) -> NDArray[np.float32]:
        """Return one row per trace, ``[n_traces, n_features]``, finite."""
        ...

    def graphs(self, traces: Sequence[Trace]) -> list[LoopGraph]:
        """Return the graph of the loops of every trace."""
        ...


class Result(Protocol):
    """The result of a candidate, as far as a model learns from it."""

    @property
    def trace(self) -> Trace:
        """The candidate."""

    @property
    def seconds(self) -> float | None:
        """Seconds per call, > 0, lower is better; None when it failed."""


class SharedCostModel:
    """A cost model with the measured rows of every task; refitted when rows have changed.

    Args:
        model: The model to fit on the rows of all tasks; fitted already where a run starts from an earlier model.
        max_rows: Most rows to learn from; beyond this number each task has a share in proportion to its number of
            candidates. Source: judged by the time of a refit, which comes once per round; 4000 rows of 103
            features take one second of one core.

    Source: one shared model with a group per workload, refitted from scratch after each round, is MetaSchedule's
    design (TVM ``xgb_model.py``); the limit on rows is ours.
    """

    def __init__(self, model: CostModel, *, max_rows: int = 4000) -> None:
        self._model = model
        self.max_rows = max_rows
        self._tasks: list[TaskModel] = []
        self._sources: list[Measured] = []
        self._stale = False
        self._done = False

    def task(self, space: Featured) -> TaskModel:
        """Return the model as one further task uses it.

        Args:
            space: The task's space. What it says of the task (``dispatch``, ``target``) is told to the model.
        """
        self._tasks.append(TaskModel(self, self._model, space, self._next_task(space)))
        return self._tasks[-1]

    def add_source(self, space: Featured, traces: Sequence[Trace], seconds: NDArray[np.float64]) -> None:
        """Have all fits know measured candidates of a dispatch that is not searched here.

        They never change, and take no rows from the tasks: these have as many as without them.

        Args:
            space: As in :meth:`task`.
            seconds: Seconds per call of each trace, > 0, ``[n_traces]``; infinite where it failed. They are compared
                with each other alone.

        Raises:
            ValueError: A time is not positive.
        """
        if traces:
            rows = TaskModel(self, self._model, space, self._next_task(space)).rows(traces)
            self._sources.append(Measured(rows, _throughput(seconds)))
            self.rows_changed()

    def rows_changed(self) -> None:
        """Have the next :meth:`refresh` refit the model."""
        self._stale = True

    def refresh(self) -> bool:
        """Refit the model if rows changed since the last refit; return whether the model can predict."""
        if self._stale and not self._done:
            self._stale = False
            total = sum(task.candidates for task in self._tasks)
            measured = [task.measured(self._share(task.candidates, total)) for task in self._tasks]
            known = [each for each in (*self._sources, *measured) if len(each.rows)]
            if known:
                self._model.fit(sorted(known, key=lambda each: each.rows.task.group))
        return self._model.fitted

    def fit_for_good(self) -> bool:
        """Refit the model for the last time, as :meth:`refresh` does: what is learnt later changes no prediction."""
        predicts = self.refresh()
        self._done = True
        return predicts

    def save(self, path: Path) -> None:
        """Write the fitted model to a file."""
        self._model.save(path)

    @property
    def fitted(self) -> bool:
        """Whether the model can predict."""
        return self._model.fitted

    def _next_task(self, space: Featured) -> ModelTask:
        number = len(self._tasks) + len(self._sources)
        return ModelTask(number, getattr(space, "dispatch", None), getattr(space, "target", None))

    def _share(self, candidates: int, total: int) -> int:
        """Return how many rows of a task the model learns from: all, or its share if tasks have too many."""
        return candidates if total <= self.max_rows else candidates * self.max_rows // total


class TaskModel:
    """The shared model as one task uses it: it is fed with what the model asks for of the task's traces.

    ``SharedCostModel.task`` makes it.

    Attributes:
        candidates: Measured candidates of the task.
    """

    def __init__(self, shared: SharedCostModel, model: CostModel, space: Featured, task: ModelTask) -> None:
        self.candidates = 0
        self._shared = shared
        self._model = model
        self._space = space
        self._task = task
        self._traces: dict[str, Trace] = {}  # of the candidates that the model may learn from, in the order of the keys
        self._features: dict[str, NDArray[np.float32]] = {}
        self._throughput = np.empty(0)
        self._best_s = np.inf  # of the candidates that the model learnt from

    @property
    def fitted(self) -> bool:
        """Whether the model can predict."""
        return self._model.fitted

    def refresh(self) -> bool:
        """Refit the model if rows of any task changed since the last refit; return whether the model can predict."""
        return self._shared.refresh()

    def learn(self, results: Mapping[str, Result], fresh: Iterable[str]) -> None:
        """Have the next refit know the results of the task's candidates.

        Where there are more candidates than the model takes rows, it learns from those with the smallest keys. Keys are
        digests of the decisions, so that these are a random sample, failures among them, which does not depend on the
        order of arrival: rows that are chosen by their times teach nothing of what is slow or fails.

        Args:
            results: All results, by the key of the trace.
            fresh: Keys of those that came since the last call.

        Raises:
            ValueError: A time is not positive.
        """
        keys = sorted({*self._traces, *fresh})[: self._shared.max_rows]
        if not keys:
            return
        added = [key for key in keys if key not in self._traces]
        rows = dict(zip(added, self._featurise([results[key].trace for key in added]), strict=True))
        self._features = {key: rows[key] if key in rows else self._features[key] for key in keys}
        self._traces = {key: results[key].trace for key in keys}
        seconds = _seconds([results[key] for key in keys])
        self._throughput, self._best_s = _throughput(seconds), float(seconds.min())
        self.candidates = len(results)
        self._shared.rows_changed()

    def judged(self, results: Sequence[Result]) -> float:
        """Return how well the model ranks candidates that it does not know yet (``pair_accuracy``), and tell it so."""
        rows, seconds = self.rows([each.trace for each in results]), _seconds(results)
        throughput = _throughput(seconds, self._best_s)
        self._model.note_errors(rows, throughput)
        return pair_accuracy(self._model.predict(rows), throughput)

    def measured(self, count: int) -> Measured:
        """Return the first ``count`` of the rows that the model may learn from, all if there are fewer."""
        features = np.stack(list(self._features.values())[:count]) if self._features and count else np.empty((0, 0))
        return Measured(self._rows(list(self._traces.values())[:count], features), self._throughput[:count])

    def rows(self, traces: Sequence[Trace]) -> Rows:
        """Return what the model reads of traces."""
        return self._rows(traces, self._featurise(traces))

    def predict(self, traces: Sequence[Trace]) -> NDArray[np.float64]:
        """Return a score per trace, ``[n_traces]``, higher is better."""
        return self._model.predict(self.rows(traces))

    def predict_with_spread(self, traces: Sequence[Trace]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return score and uncertainty per trace, both ``[n_traces]``."""
        return self._model.predict_with_spread(self.rows(traces))

    def _rows(self, traces: Sequence[Trace], features: FloatArray) -> Rows:
        feeds = self._model.feeds
        graphs = self._space.graphs(traces) if Feed.GRAPHS in feeds else ()
        return Rows(self._task, features, tuple(traces) if Feed.TRACES in feeds else (), tuple(graphs))

    def _featurise(self, traces: Sequence[Trace]) -> NDArray[np.float32]:
        if Feed.FEATURES in self._model.feeds:
            return self._space.features(traces)
        return np.empty((len(traces), 0), dtype=np.float32)


def _seconds(results: Iterable[Result]) -> NDArray[np.float64]:
    """Return the seconds per call of candidates; infinite where they failed."""
    return np.array([each.seconds or np.inf for each in results])


def _throughput(seconds: NDArray[np.float64], best_s: float = np.inf) -> NDArray[np.float64]:
    """Return best time / time of each row; zeros where all failed.

    Args:
        best_s: The best time; that of the rows where it is infinite.

    Raises:
        ValueError: A time is not positive.
    """
    if not (seconds > 0).all():
        raise ValueError(f"times must be positive, but got {seconds.min()}")
    best = best_s if np.isfinite(best_s) else float(seconds.min())
    return best / seconds if np.isfinite(best) else np.zeros(len(seconds))
