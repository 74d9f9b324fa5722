"""Gradient-boosted trees that predict quantiles: a cost model whose intervals are as wide as its errors were."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mlir_sched.models.cost_model import COVERAGE, REACH, FloatArray, Measured, Rows
from mlir_sched.models.xgboost_model import XGBoostModel, XGBoostOptions

QUANTILES = ((1 - COVERAGE) / 2, 0.5, (1 + COVERAGE) / 2)
"""What is predicted of a row's throughput: 10, 50 and 90 %."""
ROUNDS = 8
"""Last rounds whose errors count: of earlier ones the model knew less."""
LEAST = 0.01
"""Least distance of throughput between the median and another quantile: times differ by as much when repeated."""


class QuantileModel(XGBoostModel):
    """An ensemble whose members predict three quantiles of a row's throughput; the score is the median.

    The interval of a row reaches from the median towards both outer quantiles, as far as these are away times a factor
    that all rows share: the smallest with which as many rows of the last rounds as intervals have to cover lay inside.
    Before a round was judged, each member's errors on the rows that it was not fitted on stand in for rounds.

    Source: split conformal prediction with errors in units of a predicted spread (Lei et al., JASA 2018), which here is
    that of quantile regression about its median (Romano et al., NeurIPS 2019; Kivaranovic et al., AISTATS 2020). What
    these prove is for rows that are drawn alike. Those of a round are chosen by what the model predicts of them,
    therefore the errors are those of rounds.
    """

    _format: ClassVar[str] = "mlir-sched quantile model 1"
    _objective: ClassVar[Mapping[str, Any]] = {
        "objective": "reg:quantileerror",
        "quantile_alpha": [round(each, 3) for each in QUANTILES],
    }

    def __init__(self, options: XGBoostOptions | None = None) -> None:
        super().__init__(options)
        self._held_out: list[NDArray[np.float64]] = []
        self._of_rounds: deque[NDArray[np.float64]] = deque(maxlen=ROUNDS)

    def fit(self, tasks: Sequence[Measured]) -> None:
        """Fit every member anew; what :meth:`note_errors` was told stays known."""
        self._held_out = []
        super().fit(tasks)

    def predict_with_spread(self, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the median and a standard deviation, that of a normal distribution with as wide an interval."""
        quantiles = self._quantiles(rows)
        low, high = self._interval(quantiles)
        return quantiles[:, 1], (high - low) / (2 * REACH)

    def predict_interval(self, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """See :meth:`CostModel.predict_interval`."""
        return self._interval(self._quantiles(rows))

    def note_errors(self, rows: Rows, throughput: NDArray[np.float64]) -> None:
        """Have intervals be as wide as they would have had to be on these rows, among those of the last rounds."""
        self._of_rounds.append(_errors(self._quantiles(rows), throughput))

    def _fit_member(self, features: FloatArray, throughput: FloatArray, held_out: NDArray[np.bool_]) -> Any:
        member = super()._fit_member(features, throughput, held_out)
        unseen = _sorted(self._prediction(member, features[held_out]))
        self._held_out.append(_errors(unseen, throughput[held_out]))
        return member

    def _quantiles(self, rows: Rows) -> NDArray[np.float64]:
        """Return the mean of the members' quantiles, ``[n_rows, 3]``."""
        return _sorted(self._predictions(rows).mean(axis=0))

    def _interval(self, quantiles: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        below, above = _distances(quantiles)
        factor = self._factor()
        return quantiles[:, 1] - factor * below, quantiles[:, 1] + factor * above

    def _factor(self) -> float:
        """Return the error that a share :data:`COVERAGE` of further rows like the known ones does not exceed."""
        errors = np.sort(np.concatenate(self._of_rounds or self._held_out))
        return float(errors[min(len(errors), math.ceil(COVERAGE * (len(errors) + 1))) - 1])

    def _further(self) -> dict[str, Any]:
        return {"factor": self._factor()}

    def _read_further(self, data: Mapping[str, Any]) -> None:
        self._of_rounds.clear()
        self._held_out = [np.array([data["factor"]])]


def _sorted(quantiles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return quantiles in their order, which nothing else makes predictions keep."""
    return np.sort(quantiles, axis=1)


def _distances(quantiles: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how far the outer quantiles are from the median, both ``[n_rows]``."""
    low, middle, high = quantiles.T
    return np.maximum(middle - low, LEAST), np.maximum(high - middle, LEAST)


def _errors(quantiles: NDArray[np.float64], throughput: FloatArray) -> NDArray[np.float64]:
    """Return how far off the median is, in distances to the quantile on that side, ``[n_rows]``, >= 0."""
    below, above = _distances(quantiles)
    off = throughput - quantiles[:, 1]
    return np.maximum(off / above, -off / below)
