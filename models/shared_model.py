"""One cost model for all tasks of a run, with the measured rows it learns from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mlir_sched.models.cost_model import CostModel, FloatArray


class SharedCostModel:
    """A cost model with the measured rows of every task; refitted when rows have changed.

    Args:
        model: The model to fit on the rows of all tasks; fitted already where a run starts from an earlier model.
        max_rows: Most rows to learn from; beyond this number each task keeps its fastest rows, in proportion to its
            number of rows. 2000 rows keep a refit below half a second on one core.

    Source: one shared model with a group per workload, refitted from scratch after each round, is MetaSchedule's
    design (TVM ``xgb_model.py``); the limit on rows is ours.
    """

    def __init__(self, model: CostModel, *, max_rows: int = 2000) -> None:
        self._model = model
        self._max_rows = max_rows
        self._features: list[FloatArray] = []
        self._throughput: list[NDArray[np.float64]] = []
        self._stale = False

    def add_task(self) -> int:
        """Return the index of a new task without rows."""
        self._features.append(np.empty((0, 0), dtype=np.float32))
        self._throughput.append(np.empty(0))
        return len(self._features) - 1

    def update(self, task: int, features: FloatArray, seconds: NDArray[np.float64]) -> None:
        """Replace the rows of a task.

        Args:
            task: An index from ``add_task``.
            features: ``[n_rows, n_features]``; all tasks have the same features.
            seconds: ``[n_rows]`` seconds per call, lower is better; infinite for a failure.

        Raises:
            ValueError: The arrays do not fit together, or a time is not positive.
        """
        if features.ndim != 2 or seconds.shape != features.shape[:1] or not (seconds > 0).all():
            raise ValueError(f"a positive time per row is needed, got {features.shape} rows and {seconds.shape} times")
        best = float(seconds.min(initial=np.inf))
        self._features[task] = features
        self._throughput[task] = best / seconds if np.isfinite(best) else np.zeros(len(seconds))
        self._stale = True

    def refresh(self) -> bool:
        """Refit the model if rows changed since the last refit; return whether the model can predict."""
        if self._stale:
            self._stale = False
            rows = [self._rows_to_keep(task) for task in range(len(self._features))]
            used = [task for task, kept in enumerate(rows) if len(kept)]
            if used:
                self._model.fit(
                    np.concatenate([self._features[task][rows[task]] for task in used]),
                    np.concatenate([self._throughput[task][rows[task]] for task in used]),
                    np.concatenate([np.full(len(rows[task]), task, dtype=np.int64) for task in used]),
                )
        return self._model.fitted

    def predict(self, features: FloatArray) -> NDArray[np.float64]:
        """Return a score per row, ``[n_rows]``, higher is better.

        Raises:
            RuntimeError: The model is not fitted.
        """
        return self._model.predict(features)

    def predict_with_spread(self, features: FloatArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return score and uncertainty per row, both ``[n_rows]``.

        Raises:
            RuntimeError: The model is not fitted.
        """
        return self._model.predict_with_spread(features)

    def save(self, path: Path) -> None:
        """Write the fitted model to a file.

        Raises:
            RuntimeError: The model is not fitted.
        """
        self._model.save(path)

    @property
    def fitted(self) -> bool:
        """Whether the model can predict."""
        return self._model.fitted

    def _rows_to_keep(self, task: int) -> NDArray[np.int64]:
        """Return the indices of a task's rows to learn from, ascending: all, or the fastest if tasks have too many."""
        throughput = self._throughput[task]
        total = sum(map(len, self._throughput))
        share = len(throughput) if total <= self._max_rows else len(throughput) * self._max_rows // total
        return np.sort(np.argsort(-throughput, kind="stable")[:share])
