"""The Gaussian process keeps the contract of cost models, learns of other tasks, and takes few rows and one core."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from replayed_run import TARGET, matmul_dispatch

from mlir_sched.models import CostModel, Measured, ModelTask, Rows
from mlir_sched.models.gaussian_process import MultitaskGaussianProcess
from mlir_sched.models.metrics import pair_accuracy
from mlir_sched.testing import CostModelTests


class TestMultitaskGaussianProcess(CostModelTests):
    def make(self) -> CostModel:
        return MultitaskGaussianProcess()


def task(group: int, count: int, sign: float = 1.0, seed: int = 0, size: int = 0) -> Measured:
    """Return rows whose throughput follows, or with another sign falls, with the first of 20 features."""
    features = np.random.default_rng([seed, group]).random((count, 20))
    throughput = 0.5 + 0.4 * sign * (features[:, 0] - 0.5) + 0.05 * features[:, 1]
    dispatch = matmul_dispatch(size, 64, 64) if size else None
    rows = Rows(ModelTask(group, dispatch, TARGET if size else None), features.astype(np.float32))
    return Measured(rows, throughput / throughput.max())


def accuracy(model: CostModel, asked: Measured) -> float:
    return pair_accuracy(model.predict(asked.rows), asked.throughput)


def test_many_rows_of_an_alike_task_help_a_task_that_has_few() -> None:
    alone, helped = MultitaskGaussianProcess(), MultitaskGaussianProcess()
    own, asked = task(1, 12), task(1, 200, seed=1)
    alone.fit([own])
    helped.fit([task(0, 120), own])
    assert accuracy(helped, asked) > 0.9
    assert not alone.fitted or accuracy(helped, asked) > accuracy(alone, asked)


def test_a_task_without_rows_is_taken_for_the_one_nearest_in_size() -> None:
    model = MultitaskGaussianProcess()
    model.fit([task(0, 80, sign=1.0, size=64), task(1, 80, sign=-1.0, size=512)])
    for size, sign in ((96, 1.0), (400, -1.0)):
        asked = task(7, 100, sign=sign, seed=1, size=size)
        assert accuracy(model, asked) > 0.9, f"a product of {size} rows is like the nearest one"


def test_of_too_many_rows_the_task_with_most_gives_up_most(tmp_path: Path) -> None:
    model = MultitaskGaussianProcess()
    model.fit([task(0, 900), task(1, 16), task(2, 300)])
    model.save(tmp_path / "model")
    saved = json.loads((tmp_path / "model").read_text())
    assert np.bincount([int(row[-1]) for row in saved["inputs"]]).tolist() == [248, 16, 248]
    assert len(saved["columns"]) <= 12


def test_uncertainty_is_larger_where_nothing_was_measured() -> None:
    model = MultitaskGaussianProcess()
    known = task(0, 100)
    model.fit([known])
    far = Rows(known.rows.task, known.rows.features + 2)
    assert model.predict_with_spread(far)[1].min() > model.predict_with_spread(known.rows)[1].max()


@pytest.mark.parametrize("threads", [1, 2])
def test_the_threads_of_pytorch_stay_as_they_were(threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        model = MultitaskGaussianProcess()
        model.fit([task(0, 40)])
        model.predict(task(0, 40).rows)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
