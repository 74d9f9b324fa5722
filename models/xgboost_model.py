"""Gradient-boosted trees on candidate features: the default cost model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mlir_sched.models.cost_model import CostModel, FloatArray, Measured, Rows
from mlir_sched.models.model_file import read_model, write_model


@dataclass(frozen=True)
class XGBoostOptions:
    """How the trees are grown.

    "Measured" means chosen with searches of 200 trials over the synthetic spaces of ``search/synthetic_space.py``.

    Attributes:
        members: Models in the ensemble, >= 2. Each model is fitted on all folds but one, and stopped early on the
            fold that is held out. Source: measured, 4 models are clearly better than 1, and the spread of their
            predictions tells where to explore.
        max_depth: Depth of a tree. Source: 6, XGBoost's default; measured, MetaSchedule's 10 is no better.
        eta: Learning rate. Source: 0.2, MetaSchedule.
        rounds: Most trees per member. Source: early stopping rarely comes after more than 60 trees.
        early_stopping_rounds: Trees without a gain on the held-out fold before a member stops. MetaSchedule waits for
            50 trees without a gain on the training rows, where the gain hardly ever ends.
        max_bin: Histogram bins per feature. Source: 64 bins fit 2000 rows in half the time of XGBoost's 256.
        min_rows: Fewest rows for a fit. Source: a first round of 16 with some failures left out; MetaSchedule waits
            for 100.
        seed: Seed of folds and trees. Source: 43, MetaSchedule.
        threads: Threads of training and prediction; one thread is as fast as many up to a few thousand rows.
    """

    members: int = 4
    max_depth: int = 6
    eta: float = 0.2
    rounds: int = 100
    early_stopping_rounds: int = 10
    max_bin: int = 64
    min_rows: int = 12
    seed: int = 43
    threads: int = 1

    def __post_init__(self) -> None:
        if self.members < 2 or self.min_rows < self.members:
            raise ValueError(f"members >= 2 and min_rows >= members must hold, but got {self}")

    @property
    def key(self) -> str:
        """What tells models apart in the keys of stores."""
        return repr(self)

    def __call__(self) -> XGBoostModel:
        """Return a model with these options: options are given in place of a model."""
        return XGBoostModel(self)


class XGBoostModel(CostModel):
    """A small ensemble of boosted-tree models; the score is the mean of their predictions."""

    _format: ClassVar[str] = "mlir-sched xgboost model 1"
    _objective: ClassVar[Mapping[str, Any]] = {"objective": "reg:squarederror"}

    def __init__(self, options: XGBoostOptions | None = None) -> None:
        self._options = options or XGBoostOptions()
        self._members: list[Any] = []

    @property
    def fitted(self) -> bool:
        """True after a fit to enough rows with different throughputs, and after ``load``."""
        return bool(self._members)

    def fit(self, tasks: Sequence[Measured]) -> None:
        """Fit every member anew; with too few rows, or with equal throughputs, the model becomes unfitted."""
        self._members = []
        features = np.concatenate([each.rows.features for each in tasks]) if tasks else np.empty((0, 0))
        throughput = np.concatenate([each.throughput for each in tasks]) if tasks else np.empty(0)
        if len(features) < self._options.min_rows or float(np.ptp(throughput)) == 0.0:
            return
        fold = np.random.default_rng(self._options.seed).permutation(len(features)) % self._options.members
        self._members = [
            self._fit_member(features, throughput, fold == member) for member in range(self._options.members)
        ]

    def predict(self, rows: Rows) -> NDArray[np.float64]:
        """Return the mean score of the members."""
        return self.predict_with_spread(rows)[0]

    def predict_with_spread(self, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and standard deviation over the members, both ``[n_rows]``."""
        scores = self._predictions(rows)
        return scores.mean(axis=0), scores.std(axis=0)

    def gains(self) -> NDArray[np.float64]:
        """Return how much all members gain by the splits on each feature, [n_features]; 0 where none uses it."""
        if not self._members:
            raise RuntimeError("the model is not fitted")
        found = np.zeros(self._members[0].num_features())
        for member in self._members:
            for name, gain in member.get_score(importance_type="total_gain").items():
                found[int(name.removeprefix("f"))] += gain
        return found

    def save(self, path: Path) -> None:
        """Write all members into one JSON file, atomically."""
        if not self._members:
            raise RuntimeError("the model is not fitted")
        members = [json.loads(bytes(member.save_raw("json"))) for member in self._members]
        write_model(path, self._format, {"members": members, **self._further()})

    def load(self, path: Path) -> None:
        """Read all members; of the options, only ``threads`` matters before the next fit."""
        import xgboost

        data = read_model(path, self._format)
        self._members = []
        for member in data["members"]:
            booster = xgboost.Booster({"nthread": self._options.threads})
            booster.load_model(bytearray(json.dumps(member).encode()))
            self._members.append(booster)
        self._read_further(data)

    def _further(self) -> dict[str, Any]:
        """Return what a file has beside the members, as JSON data."""
        return {}

    def _read_further(self, data: Mapping[str, Any]) -> None:
        """Read what a file has beside the members."""

    def _predictions(self, rows: Rows) -> NDArray[np.float64]:
        """Return what every member predicts, ``[members, n_rows]`` and what else its objective has.

        Raises:
            RuntimeError: The model is not fitted.
        """
        if not self._members:
            raise RuntimeError("the model is not fitted")
        return np.stack([self._prediction(member, rows.features) for member in self._members])

    def _prediction(self, member: Any, features: FloatArray) -> NDArray[np.float64]:
        return np.asarray(member.inplace_predict(np.ascontiguousarray(features, dtype=np.float32)), dtype=np.float64)

    def _fit_member(self, features: FloatArray, throughput: FloatArray, held_out: NDArray[np.bool_]) -> Any:
        import xgboost  # takes 0.3 s, which only a tuning run should spend

        options = self._options
        rows, held = (
            xgboost.DMatrix(features[part], label=throughput[part], nthread=options.threads)
            for part in (~held_out, held_out)
        )
        booster = xgboost.train(
            {
                **self._objective,
                "tree_method": "hist",
                "max_bin": options.max_bin,
                "max_depth": options.max_depth,
                "eta": options.eta,
                "seed": options.seed,
                "nthread": options.threads,
                "verbosity": 0,
            },
            rows,
            num_boost_round=options.rounds,
            evals=[(held, "held_out")],
            early_stopping_rounds=options.early_stopping_rounds,
            verbose_eval=False,
        )
        return booster[: booster.best_iteration + 1]
