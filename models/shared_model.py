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
        max_rows: Most rows to learn from; beyond this number each task has a share in proportion to its number of
            candidates. Source: judged by the time of a refit, which comes once per round; 4000 rows of 84 features take
            one second of one core.

    Source: one shared model with a group per workload, refitted from scratch after each round, is MetaSchedule's
    design (TVM ``xgb_model.py``); the limit on rows is ours.
    """

    def __init__(self, model: CostModel, *, max_rows: int = 4000) -> None:
        self._model = model
        self.max_rows = max_rows
        self._candidates: list[int] = []
        self._features: list[FloatArray] = []
        self._throughput: list[NDArray[np.float64]] = []
        self._stale = False

    def add_task(self) -> int:
        """Return the index of a new task without rows."""
        self._features.append(np.empty((0, 0), dtype=np.float32))
        self._throughput.append(np.empty(0))
        self._candidates.append(0)
        return len(self._features) - 1

    def update(
        self, task: int, features: FloatArray, seconds: NDArray[np.float64], candidates: int | None = None
    ) -> None:
        """Replace the rows of a task, of which the model takes the first where all tasks together have too many.

        Rows that are chosen by their times teach nothing of what is slow or fails: the order of the rows must have
        nothing to do with their times.

        Args:
            task: An index from ``add_task``.
            features: ``[n_rows, n_features]``; all tasks have the same features.
            seconds: ``[n_rows]`` seconds per call, lower is better; infinite for a failure.
            candidates: Measured candidates of the task, by default as many as rows; a task with more than ``max_rows``
                need not give all of their rows.

        Raises:
            ValueError: The arrays do not fit together, or a time is not positive.
        """
        if features.ndim != 2 or seconds.shape != features.shape[:1] or not (seconds > 0).all():
            raise ValueError(f"a positive time per row is needed, got {features.shape} rows and {seconds.shape} times")
        best = float(seconds.min(initial=np.inf))
        self._features[task] = features
        self._throughput[task] = best / seconds if np.isfinite(best) else np.zeros(len(seconds))
        self._candidates[task] = len(seconds) if candidates is None else candidates
        self._stale = True

    def refresh(self) -> bool:
        """Refit the model if rows changed since the last refit; return whether the model can predict."""
        if self._stale:
            self._stale = False
            shares = {task: share for task in range(len(self._features)) if (share := self._share(task))}
            if shares:
                self._model.fit(
                    np.concatenate([self._features[task][:share] for task, share in shares.items()]),
                    np.concatenate([self._throughput[task][:share] for task, share in shares.items()]),
                    np.concatenate([np.full(share, task, dtype=np.int64) for task, share in shares.items()]),
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

    def _share(self, task: int) -> int:
        """Return how many of a task's rows the model learns from: all, or its share if tasks have too many."""
        total, own = sum(self._candidates), self._candidates[task]
        return min(len(self._throughput[task]), own if total <= self.max_rows else own * self.max_rows // total)
