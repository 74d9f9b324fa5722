"""A cost model of which is counted how often its intervals held."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mlir_sched.models import CostModel, Measured, Rows


class Watched(CostModel):
    """A model of which is counted how often its intervals held.

    Attributes:
        judged: Rows of which it was told what came of them.
        inside: Those whose throughput was in the interval that it gave before.
    """

    def __init__(self, model: CostModel) -> None:
        self._model = model
        self.judged = self.inside = 0

    @property
    def fitted(self) -> bool:
        """Whether the model is."""
        return self._model.fitted

    def fit(self, tasks: Sequence[Measured]) -> None:
        """Fit the model."""
        self._model.fit(tasks)

    def predict(self, rows: Rows) -> NDArray[np.float64]:
        """Return what the model predicts."""
        return self._model.predict(rows)

    def predict_with_spread(self, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what the model predicts."""
        return self._model.predict_with_spread(rows)

    def note_errors(self, rows: Rows, throughput: NDArray[np.float64]) -> None:
        """Count, and tell the model."""
        low, high = self._model.predict_interval(rows)
        self.judged += len(rows)
        self.inside += int(((low <= throughput) & (throughput <= high)).sum())
        self._model.note_errors(rows, throughput)

    def save(self, path: Path) -> None:
        """Save the model."""
        self._model.save(path)

    def load(self, path: Path) -> None:
        """Load the model."""
        self._model.load(path)
