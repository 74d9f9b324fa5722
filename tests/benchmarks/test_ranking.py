"""Models are judged on pools that they were not taught: whose rows teach, which are ranked, and what that is worth."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from folders import ROOT
from measured_tasks import draws, failed, measured_task
from numpy.typing import NDArray
from replayed_run import TARGET, matmul_dispatch

from benchmarks.figures.publishing import Publishing
from benchmarks.strategies import command
from benchmarks.strategies.pools import Pool, Sources, pools_in, sources_of, taught
from benchmarks.strategies.ranking import ORDER, Ranked, ranked, results_table
from mlir_sched.corpus import Measurement, Origin
from mlir_sched.corpus.files import write_task
from mlir_sched.errors import UserError
from mlir_sched.models import CostModel, Measured, RandomModel, Rows, XGBoostOptions
from mlir_sched.payload import Dispatch
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target

ELSEWHERE = replace(TARGET, machine=(("cpu", "another"),))
SHAPES = {"matmul_96x96x160": (64, 96, 128), "matmul_196x256x128": (96, 64, 96), "vecmat_512x512": (48, 128, 64)}
"""Programs of the corpus' list, which name the family, with products in their place."""


def seconds_of(features: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return made-up times, which follow from one of the features alone."""
    return 1e-4 * np.exp(features[:, column()].astype(np.float64) / 8)


@cache
def column() -> int:
    """Return the feature that has most values."""
    features = features_of(matmul_dispatch(*SHAPES["matmul_96x96x160"]), 96)
    return int(np.argmax([len(np.unique(each)) for each in features.T]))


def features_of(dispatch: Dispatch, count: int) -> NDArray[np.float32]:
    return DesignSpace(Space.default(TARGET), dispatch, TARGET).features(draws(count, dispatch))


def pool(name: str, *, count: int = 24, of_search: int = 0, target: Target = TARGET) -> Pool:
    """Return a pool of random draws and, behind them, candidates that a search chose, which are twice as fast."""
    dispatch = matmul_dispatch(*SHAPES[name])
    traces = draws(count + of_search, dispatch)
    seconds = seconds_of(features_of(dispatch, count + of_search))
    origins = [Origin.RANDOM] * count + [Origin.MODEL] * of_search
    seconds[count:] /= 2
    measured = [
        Measurement(trace, each, (1e-3 / each,) * 3, None, origin)
        for trace, each, origin in zip(traces, seconds.tolist(), origins, strict=True)
    ]
    return Pool(replace(measured_task(measured, dispatch, target=target), name=name))


class Knowing(CostModel):
    """A model that knows how times are made up, and what it was asked."""

    def __init__(self) -> None:
        self.taught: list[Measured] = []
        self.asked: list[Rows] = []

    @property
    def fitted(self) -> bool:
        return bool(self.taught)

    def fit(self, tasks: Sequence[Measured]) -> None:
        self.taught += tasks

    def predict(self, rows: Rows) -> NDArray[np.float64]:
        self.asked.append(rows)
        return -seconds_of(np.asarray(rows.features, dtype=np.float32))

    def save(self, path: Path) -> None:
        raise NotImplementedError

    def load(self, path: Path) -> None:
        raise NotImplementedError


def of(found: Sequence[Ranked], sources: str, own: int = 0) -> Ranked:
    (one,) = [each for each in found if each.what == (sources, own)]
    return one


def names(found: Sequence[Pool]) -> list[str]:
    return [each.task.name for each in found]


def test_a_pool_is_taught_by_what_is_left_when_its_shape_its_family_or_its_machine_is_left_out() -> None:
    own, shape, other = (pool(name, count=12) for name in SHAPES)
    there, shape_there = (
        pool("matmul_96x96x160", count=12, target=ELSEWHERE),
        replace(shape, task=replace(shape.task, target=ELSEWHERE)),
    )
    pools = (other, shape, own, there, shape_there)
    assert names(sources_of(own, Sources.SHAPES, pools)) == ["matmul_196x256x128"]
    assert names(sources_of(own, Sources.FAMILIES, pools)) == ["vecmat_512x512"]
    assert names(sources_of(own, Sources.BOTH, pools)) == ["matmul_196x256x128", "vecmat_512x512"]
    assert sources_of(own, Sources.MACHINES, pools) == (shape_there,), "the same shape elsewhere is left out, too"
    assert sources_of(own, Sources.NOTHING, pools) == ()


def test_rows_of_the_family_come_first_and_others_share_what_is_left() -> None:
    own, shape, other = (pool(name, count=12) for name in SHAPES)

    def counts(most: int) -> list[tuple[bool, int]]:
        found = taught(own, (shape, other), Knowing(), most)
        return [(each.rows.task.dispatch == shape.task.dispatch, len(each.rows)) for each in found]

    assert counts(100) == [(True, 12), (False, 12)]
    assert counts(20) == [(True, 12), (False, 8)]
    assert [counts(most) for most in (12, 5)] == [[(True, 12)], [(True, 5)]]
    (few,) = taught(own, (shape,), Knowing(), 5)
    assert few.throughput.max() == 1.0, "relative to the fastest of the rows that teach"


def test_a_model_that_knows_the_times_ranks_all_draws_and_its_first_favourite_is_the_best() -> None:
    own, shape, _ = pools = [pool(name, of_search=6) for name in SHAPES]
    found = list(ranked(pools, Knowing, [0, 8], 600))
    one = of([each for each in found if each.pool == own.task.name], Sources.SHAPES, 8)
    draws_left = own.seconds[8:24]
    assert one.accuracy == 1.0, "it knows nothing of what a search chose, which is twice as fast as it thinks"
    assert one.best == pytest.approx((draws_left.min() / own.seconds.min(),) * 3)
    assert one.best[0] > 1.5, "what a search chose is no favourite, but counts as the best known"
    slower = of([each for each in found if each.pool == shape.task.name], ORDER)
    assert slower.accuracy == 0.5
    assert slower.best[0] > slower.best[1] > slower.best[2] > 1


def test_own_rows_and_what_a_search_chose_are_not_ranked() -> None:
    models = list[Knowing]()

    def make() -> Knowing:
        models.append(Knowing())
        return models[-1]

    pools = [pool(name, of_search=6) for name in list(SHAPES)[:2]]
    found = list(ranked(pools, make, [0, 8], 600))
    assert [len(model.asked[0]) for model in models[:3]] == [24, 24, 16]
    assert [[len(each.rows) for each in model.taught] for model in models[:4]] == [[30], [30], [8], [30, 8]]
    own = [each for each in found if each.sources == Sources.NOTHING]
    assert [each.own for each in own] == [8, 8]


def test_a_pool_with_too_few_draws_has_no_place() -> None:
    assert list(ranked([pool("vecmat_512x512", count=12)], Knowing, [4], 600)) == []


def test_a_favourite_that_fails_counts_as_the_slowest() -> None:
    whole = pool("vecmat_512x512", count=14)
    favourite = 1 + int(np.argmin(whole.seconds[1:]))
    measured = [failed(each.trace) if row == favourite else each for row, each in enumerate(whole.task.measured)]
    measured[favourite] = replace(measured[favourite], origin=Origin.RANDOM)
    one = Pool(replace(whole.task, measured=tuple(measured)))
    valid = np.delete(whole.seconds, favourite)
    found = of(list(ranked([one], Knowing, [1], 600)), Sources.NOTHING, 1)
    assert found.best[0] == pytest.approx(valid.max() / valid.min())
    assert found.best[1] == pytest.approx(np.sort(valid[1:])[0] / valid.min())


def test_other_shapes_teach_the_default_model_and_random_scores_teach_nothing() -> None:
    pools = [pool(name, count=96) for name in SHAPES]
    by_trees, by_chance = (list(ranked(pools, make, [0], 600)) for make in (XGBoostOptions(), RandomModel))

    def accuracy(found: Sequence[Ranked]) -> float:
        return float(np.mean([each.accuracy for each in found if each.sources == Sources.BOTH]))

    assert accuracy(by_trees) > 0.8
    assert 0.4 < accuracy(by_chance) < 0.6


def test_a_table_has_the_kinds_of_sources_in_order_with_the_families_ends() -> None:
    found = [
        Ranked("a", "products", Sources.SHAPES, 0, 0.8, (1.0, 1.0, 1.0)),
        Ranked("b", "softmax", Sources.SHAPES, 0, 0.6, (4.0, 1.0, 1.0)),
        Ranked("a", "products", Sources.NOTHING, 16, 0.7, (2.0, 1.5, 1.0)),
        Ranked("a", "products", ORDER, 0, 0.5, (3.0, 2.0, 1.5)),
    ]
    table = results_table(found, "xgboost", Publishing(None, (), "command"))
    assert [name for name, _ in table.rows] == [ORDER, "16 own rows", "other shapes"]
    _, (count, accuracy, first, *_) = table.rows[-1]
    assert [getattr(each, "median", None) for each in (count, accuracy, first)] == [2, pytest.approx(0.7), 2.0]
    assert (getattr(first, "low", None), getattr(first, "high", None)) == (1.0, 4.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with small pools of three programs."""
    for name in SHAPES:
        (tmp_path / "pools").mkdir(exist_ok=True)
        write_task(tmp_path / "pools" / f"{name}.jsonl.gz", pool(name).task)
    return tmp_path / "pools"


def test_a_folder_without_pools_or_with_few_draws_ends_in_one_line(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(pools_in([folder])) == 3
    for arguments, why in (
        ([str(tmp_path / "nothing")], "corpus collect pools"),
        ([str(folder), "--own", "32"], "42 random"),
    ):
        monkeypatch.setattr(sys, "argv", ["strategies", "ranking", *arguments])
        with pytest.raises(UserError, match=why):
            command.main()


@pytest.mark.promise
def test_two_processes_print_the_same(folder: Path) -> None:
    line = [sys.executable, "-m", "benchmarks", "strategies", "ranking", str(folder), "--own", "0", "12"]
    printed = [
        subprocess.run(
            line, check=True, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}
        )
        for seed in ("1", "2")
    ]
    assert printed[0].stdout == printed[1].stdout
    assert "other shapes and families, 12 own rows" in printed[0].stdout
    assert "72 rows read and featurised" in printed[0].stderr
