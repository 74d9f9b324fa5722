"""A control for the cost models: random scores."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mlir_sched.models.cost_model import CostModel, Measured, Rows


class RandomModel(CostModel):
    """A model of uniform random scores in 0..1; a search with it shows what the strategy achieves without a model."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self._fitted = False

    @property
    def fitted(self) -> bool:
        """True after a fit to at least one row, and after ``load``."""
        return self._fitted

    def fit(self, tasks: Sequence[Measured]) -> None:
        """Learn nothing."""
        self._fitted = any(len(each.rows) for each in tasks)

    def predict(self, rows: Rows) -> NDArray[np.float64]:
        """Return one random score per row."""
        if not self._fitted:
            raise RuntimeError("the model is not fitted")
        return self._rng.random(len(rows))

    def save(self, path: Path) -> None:
        """Write the seed."""
        if not self._fitted:
            raise RuntimeError("the model is not fitted")
        path.write_text(json.dumps({"model": "random", "seed": self._seed}))

    def load(self, path: Path) -> None:
        """Read the seed and restart the sequence of scores."""
        data = json.loads(path.read_text())
        if not isinstance(data, dict) or data.get("model") != "random":
            raise ValueError(f"{path} is not a random model")
        self._seed = int(data["seed"])
        self._rng = np.random.default_rng(self._seed)
        self._fitted = True
