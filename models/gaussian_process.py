"""A Gaussian process over the candidates of several tasks, which learns how much each task says of each other one.

Needs the extra ``gp``. Sources: GPTune (Liu et al., PPoPP 2021) for multitask learning in tuners, BoTorch's
``MultiTaskGP`` for the model; that trees choose its features, and how rows are left out, is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from botorch.exceptions import ModelFittingError
from botorch.fit import fit_gpytorch_mll
from botorch.models import MultiTaskGP
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.means import ZeroMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from numpy.typing import NDArray

from mlir_sched.models.cost_model import CostModel, Measured, ModelTask, Rows
from mlir_sched.models.model_file import read_model, write_model
from mlir_sched.models.torch_state import numbers_of, one_core, restore
from mlir_sched.models.xgboost_model import XGBoostModel, XGBoostOptions
from mlir_sched.payload import extent_distance, family_of

_FORMAT = "mlir-sched gaussian process 1"
_AT_ONCE = 512
"""Rows that are predicted at once: the time per row grows with their number."""


@dataclass(frozen=True)
class GaussianProcessOptions:
    """How the process is fitted.

    Attributes:
        features: Most features, each with a length scale: those that the trees gain most by.
        rank: Rank of the covariance of tasks.
        max_rows: Most rows, as a fit takes time in proportion to their cube; tasks with more rows than others give
            up rows first.
        iterations: Most steps of the optimiser of the hyper-parameters. Bounds the time of a fit.
        seed: Seed of the hyper-parameters that it starts from.
        trees: Chooses features, and says how many rows are too few.
    """

    features: int = 12
    rank: int = 2
    max_rows: int = 512
    iterations: int = 20
    seed: int = 43
    trees: XGBoostOptions = field(default_factory=XGBoostOptions)


@dataclass(frozen=True)
class _KnownTask:
    """A task that the process was fitted on.

    Attributes:
        group: Its number.
        family, extents: Of the main op of its dispatch; empty where that is not known.
        mean, deviation: Of the throughput of its rows; the process predicts distances from the mean in deviations.
    """

    group: int
    family: str
    extents: tuple[int, ...]
    mean: float
    deviation: float

    @staticmethod
    def of(task: ModelTask, throughput: NDArray[np.float64]) -> _KnownTask:
        """Return the task of rows."""
        deviation = float(throughput.std())
        return _KnownTask(task.group, *_place(task), float(throughput.mean()), deviation if deviation > 0 else 1.0)


@dataclass(frozen=True)
class _Fit:
    """A fitted process, with what its inputs are made from.

    Attributes:
        columns: The features that it reads.
        low, width: Of each of these among the rows that it was fitted on: least value, and largest less least.
        tasks: The tasks, in the order of their numbers within the process.
        inputs: ``[n_rows, n_columns + 1]``: features in 0..1, and the number of the task.
        targets: ``[n_rows, 1]``: throughput less the task's mean, over its deviation.
    """

    columns: tuple[int, ...]
    low: NDArray[np.float64]
    width: NDArray[np.float64]
    tasks: tuple[_KnownTask, ...]
    inputs: NDArray[np.float64]
    targets: NDArray[np.float64]
    process: Any

    def number_of(self, task: ModelTask) -> int:
        """Return the number of a task, or that of the nearest one where it is not known.

        Nearest are those of its family, and of these the one whose main op is nearest in size.
        """
        family, extents = _place(task)

        def order(number: int) -> tuple[bool, bool, float, int]:
            known = self.tasks[number]
            distance = extent_distance(known.extents, extents)
            return known.group != task.group, known.family != family, distance, number

        return min(range(len(self.tasks)), key=order)


class MultitaskGaussianProcess(CostModel):
    """A Gaussian process over the features that trees use most; each task has rows and a covariance with the others.

    Throughput is standardised within each task. The features have a Matern kernel with a length scale each.
    """

    def __init__(self, options: GaussianProcessOptions | None = None) -> None:
        self._options = options or GaussianProcessOptions()
        self._fit: _Fit | None = None

    @property
    def fitted(self) -> bool:
        """True after a fit to enough rows with different throughputs, and after ``load``."""
        return self._fit is not None

    def fit(self, tasks: Sequence[Measured]) -> None:
        """Fit the process anew; where trees learn nothing, or the optimiser fails, the model becomes unfitted."""
        self._fit = None
        trees = XGBoostModel(self._options.trees)
        trees.fit(tasks)
        if not trees.fitted:
            return
        gains = trees.gains()
        columns = [int(each) for each in np.argsort(-gains, kind="stable")[: self._options.features] if gains[each] > 0]
        if not columns:
            return
        shares = _shares([len(each.rows) for each in tasks], self._options.max_rows)
        kept = [(each, _spread(len(each.rows), share)) for each, share in zip(tasks, shares, strict=True) if share]
        known = tuple(_KnownTask.of(each.rows.task, each.throughput[rows]) for each, rows in kept)
        features = np.concatenate([each.rows.features[rows][:, columns] for each, rows in kept]).astype(np.float64)
        low, width = features.min(axis=0), np.ptp(features, axis=0)
        width[width == 0] = 1.0
        numbers = np.repeat(np.arange(len(kept)), [len(rows) for _, rows in kept])
        targets = np.concatenate(
            [
                (each.throughput[rows] - task.mean) / task.deviation
                for (each, rows), task in zip(kept, known, strict=True)
            ]
        )
        inputs = np.column_stack([(features - low) / width, numbers])
        with one_core(self._options.seed):
            process = self._process(inputs, targets[:, None])
            try:
                fit_gpytorch_mll(
                    ExactMarginalLogLikelihood(process.likelihood, process),
                    optimizer_kwargs={"options": {"maxiter": self._options.iterations}},
                )
            except ModelFittingError:
                return
        self._fit = _Fit(tuple(columns), low, width, known, inputs, targets[:, None], process)

    def predict(self, rows: Rows) -> NDArray[np.float64]:
        """Return the expected throughput of each row."""
        return self.predict_with_spread(rows)[0]

    def predict_with_spread(self, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return expected throughput and its standard deviation, both ``[n_rows]``."""
        fit = self._known()
        number = fit.number_of(rows.task)
        task = fit.tasks[number]
        inputs = (np.asarray(rows.features[:, fit.columns], dtype=np.float64) - fit.low) / fit.width
        asked = torch.tensor(np.column_stack([inputs, np.full(len(rows), float(number))]))
        with one_core(self._options.seed), torch.no_grad():
            found = [fit.process.posterior(part) for part in asked.split(_AT_ONCE)]
            mean = np.concatenate([each.mean.numpy()[:, 0] for each in found])
            deviation = np.concatenate([each.variance.clamp_min(0).sqrt().numpy()[:, 0] for each in found])
        return task.mean + task.deviation * mean, task.deviation * deviation

    def save(self, path: Path) -> None:
        """Write rows and hyper-parameters into one JSON file, atomically."""
        fit = self._known()
        tasks = [[each.group, each.family, each.extents, each.mean, each.deviation] for each in fit.tasks]
        arrays = {name: getattr(fit, name).tolist() for name in ("low", "width", "inputs", "targets")}
        numbers = numbers_of(fit.process)
        write_model(path, _FORMAT, {"columns": fit.columns, "tasks": tasks, **arrays, "process": numbers})

    def load(self, path: Path) -> None:
        """Read rows and hyper-parameters; of the options, only ``rank`` has to be that of the fit."""
        data = read_model(path, _FORMAT)
        tasks = tuple(_KnownTask(group, family, tuple(extents), *of) for group, family, extents, *of in data["tasks"])
        low, width, inputs, targets = (np.array(data[name]) for name in ("low", "width", "inputs", "targets"))
        with one_core(self._options.seed):
            process = self._process(inputs, targets)
        restore(process, data["process"])
        self._fit = _Fit(tuple(data["columns"]), low, width, tasks, inputs, targets, process)

    def _process(self, inputs: NDArray[np.float64], targets: NDArray[np.float64]) -> Any:
        """Return a process that is not fitted yet."""
        columns, tasks = inputs.shape[1] - 1, int(inputs[:, -1].max()) + 1
        return MultiTaskGP(
            torch.tensor(inputs),
            torch.tensor(targets),
            task_feature=-1,
            mean_module=ZeroMean(),
            covar_module=get_covar_module_with_dim_scaled_prior(ard_num_dims=columns, use_rbf_kernel=False),
            rank=min(self._options.rank, tasks),
            outcome_transform=None,
        )

    def _known(self) -> _Fit:
        if self._fit is None:
            raise RuntimeError("the model is not fitted")
        return self._fit


def _place(task: ModelTask) -> tuple[str, tuple[int, ...]]:
    """Return family and extents by which tasks are near to each other."""
    return (family_of(task.dispatch), task.dispatch.main_op.extents) if task.dispatch else ("", ())


def _shares(counts: Sequence[int], most: int) -> list[int]:
    """Return how many of its rows each task keeps: all, or as many as every other one that has more."""
    shares, left = [0] * len(counts), most
    for place, task in enumerate(sorted(range(len(counts)), key=counts.__getitem__)):
        shares[task] = min(counts[task], left // (len(counts) - place))
        left -= shares[task]
    return shares


def _spread(rows: int, count: int) -> NDArray[np.int64]:
    """Return ``count`` of so many rows, evenly spread."""
    return np.linspace(0, rows - 1, count).round().astype(np.int64)
