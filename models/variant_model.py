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
    """One small tree per variant; a variant that few programs have has none."""

    _trees: dict[str, Any] = field(default_factory=dict)

    def fit(self, features: NDArray[np.float64], ratios: Mapping[str, NDArray[np.float64]]) -> None:
        """Fit the trees anew.

        Args:
            features: ``[n_programs, n_features]``; NaN where a number is not known.
            ratios: By variant, ``[n_programs]``: how many times as fast as the program it is, > 0; NaN where that was
                not measured.
        """
        measured = {name: ~np.isnan(known) for name, known in ratios.items()}
        self._trees = {
            name: _tree(features[measured[name]], np.log(known[measured[name]]))
            for name, known in ratios.items()
            if measured[name].sum() >= LEAST_ROWS
        }

    def predict(self, features: NDArray[np.float64]) -> dict[str, float]:
        """Return how many times as fast as a program each of its variants is that has a tree, by name.

        Args:
            features: ``[n_features]`` of the program.
        """
        return {name: float(np.exp(tree.inplace_predict(features[None])[0])) for name, tree in self._trees.items()}


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
