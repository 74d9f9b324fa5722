"""Decision trees that predict how fast the variants of a program are, from where the program's time goes.

A feature of an input chooses the algorithm: Ding et al., "Autotuning Algorithmic Choice for Input Sensitivity" (2015).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

DEPTH, LEAST_PER_LEAF, LEAST_ROWS = 3, 2, 4
"""Depth of a tree, and fewest rows of a leaf and of a tree: there are tens of programs, not thousands."""


@dataclass
class VariantModel:
    """Two small trees per variant, how often it works and how fast it is then; none where few programs have it."""

    _chances: dict[str, Any] = field(default_factory=dict)
    _speeds: dict[str, Any] = field(default_factory=dict)

    def fit(self, features: NDArray[np.float64], ratios: Mapping[str, NDArray[np.float64]]) -> None:
        """Fit the trees anew.

        Args:
            features: ``[n_programs, n_features]``; NaN where a number is not known.
            ratios: By variant, ``[n_programs]``: how many times as fast as the program it is, 0 where it fails; NaN
                where that was not measured.
        """
        self._chances, self._speeds = {}, {}
        for name, known in ratios.items():
            measured, works = ~np.isnan(known), known > 0
            if measured.sum() >= LEAST_ROWS and not works[measured].all():
                self._chances[name] = _tree(features[measured], works[measured].astype(np.float64))
            if works.sum() >= LEAST_ROWS:
                self._speeds[name] = _tree(features[works], np.log(known[works]))

    def predict(self, features: NDArray[np.float64]) -> dict[str, float]:
        """Return how many times as fast as a program each of its variants is expected to be, by name.

        That is how fast it is where it works, as fast as the program if that is not known, times the chance that it
        works. A variant without a tree is missing.

        Args:
            features: ``[n_features]`` of the program.
        """

        def leaf(tree: Any) -> float:
            return float(tree.inplace_predict(features[None])[0])

        speeds = {name: float(np.exp(leaf(tree))) for name, tree in self._speeds.items()}
        chances = {name: min(max(leaf(tree), 0.0), 1.0) for name, tree in self._chances.items()}
        return {name: speeds.get(name, 1.0) * chances.get(name, 1.0) for name in {**speeds, **chances}}


def _tree(features: NDArray[np.float64], values: NDArray[np.float64]) -> Any:
    """Return the tree with the mean of ``values`` in every leaf: boosting of one round, without shrinkage."""
    import xgboost  # takes 0.3 s, which only a tuning run should spend

    parameters = {
        "objective": "reg:squarederror",
        "tree_method": "exact",
        "max_depth": DEPTH,
        "min_child_weight": LEAST_PER_LEAF,
        "eta": 1.0,
        "lambda": 0.0,
        "base_score": float(values.mean()),
        "nthread": 1,
        "verbosity": 0,
    }
    return xgboost.train(parameters, xgboost.DMatrix(features, label=values, nthread=1), num_boost_round=1)
