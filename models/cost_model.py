"""The contract of a cost model, which scores candidates by their features; a higher score is better."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
"""Features, scores and throughputs; single or double precision."""

IntArray: TypeAlias = NDArray[np.int64]
"""Task indices."""


class CostModel(ABC):
    """A model that learns from measured candidates which candidates are fast.

    The same calls in the same order must give the same scores in any process.
    """

    @property
    @abstractmethod
    def fitted(self) -> bool:
        """Whether :meth:`predict` may be called."""

    @abstractmethod
    def fit(self, features: FloatArray, throughput: FloatArray, groups: IntArray) -> None:
        """Fit the model to all measured candidates and forget earlier fits.

        A model may decline to learn from too little data; ``fitted`` is then False.

        Args:
            features: ``[n_rows, n_features]``, finite.
            throughput: ``[n_rows]`` in 0..1: best time of the row's task / time of the row; 0 for a failure.
            groups: ``[n_rows]``, the index of the row's task. Only rows of the same group can be compared.

        Raises:
            ValueError: The shapes of the arrays do not match, or a value is out of range.
        """

    @abstractmethod
    def predict(self, features: FloatArray) -> NDArray[np.float64]:
        """Return a score per row, ``[n_rows]``, higher is better, on the scale of ``throughput``.

        Raises:
            RuntimeError: The model is not fitted.
        """

    def predict_with_spread(self, features: FloatArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return score and uncertainty (a standard deviation, >= 0) per row, both ``[n_rows]``.

        A model that does not estimate its uncertainty returns zeros.

        Raises:
            RuntimeError: The model is not fitted.
        """
        scores = self.predict(features)
        return scores, np.zeros_like(scores)

    @abstractmethod
    def save(self, path: Path) -> None:
        """Write the fitted model to a file.

        Raises:
            RuntimeError: The model is not fitted.
        """

    @abstractmethod
    def load(self, path: Path) -> None:
        """Read a file that ``save`` wrote; the model is fitted afterwards.

        Raises:
            ValueError: The file is not a model of this kind.
        """


def check_rows(features: FloatArray, throughput: FloatArray, groups: IntArray) -> None:
    """Check that the arguments of :meth:`CostModel.fit` fit together.

    Raises:
        ValueError: They do not fit together; the message says why.
    """
    if features.ndim != 2 or throughput.shape != features.shape[:1] or groups.shape != throughput.shape:
        shapes = f"{features.shape}, {throughput.shape} and {groups.shape}"
        raise ValueError(f"features [rows, n], throughput [rows] and groups [rows] are needed, but got {shapes}")
    if not np.isfinite(features).all():
        raise ValueError("features must be finite")
    if throughput.size and (throughput.min() < 0.0 or throughput.max() > 1.0 or np.isnan(throughput).any()):
        raise ValueError(f"throughput must lie in 0..1, but got {throughput.min()} to {throughput.max()}")
