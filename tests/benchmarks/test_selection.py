"""What a part of the candidates teaches, by how it is chosen: half at random, then by a model that knows the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from measured_tasks import draws, measured_task, timed
from numpy.typing import NDArray
from replayed_run import matmul_dispatch

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Figure
from benchmarks.strategies import selection
from benchmarks.strategies.pools import Pool
from benchmarks.strategies.selection import ALL, RANDOM, WAYS, Ranked, chosen_rows, judgement, ranked, results_table
from benchmarks.strategies.verdict import Verdict
from mlir_sched.corpus import Origin
from mlir_sched.models import CostModel, Measured, Rows
from mlir_sched.payload import Dispatch

SHAPES = {"a": (64, 96, 128), "b": (96, 64, 96), "c": (48, 128, 64)}


def pool(name: str, drawn: int = 20, of_search: int = 20) -> Pool:
    dispatch = matmul_dispatch(*SHAPES[name])
    traces = draws(drawn + of_search, dispatch)
    origins = [Origin.RANDOM] * drawn + [Origin.MODEL] * of_search
    ratios = [1.0 + int(trace.key[:4], 16) % 97 for trace in traces]
    return Pool(replace(measured_task(map(timed, traces, ratios, origins), dispatch), name=name))


A, B, C = POOLS = [pool(name) for name in SHAPES]


class Numbered(CostModel):
    """A model that expects most of the first of the rows that it is asked about, and is least sure of the last."""

    taught: list[list[Dispatch | None]] = []  # noqa: RUF012 - of all models
    fitted = False

    def fit(self, tasks: Sequence[Measured]) -> None:
        self.taught.append([each.rows.task.dispatch for each in tasks])
        self.fitted = True

    def predict(self, rows: Rows) -> NDArray[np.float64]:
        return -np.arange(len(rows), dtype=np.float64)

    def predict_with_spread(self, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.predict(rows), np.arange(len(rows), dtype=np.float64)

    def save(self, path: Path) -> None:
        raise NotImplementedError

    def load(self, path: Path) -> None:
        raise NotImplementedError


@pytest.fixture
def numbered(monkeypatch: pytest.MonkeyPatch) -> list[list[Dispatch | None]]:
    """Have choosing models know nothing; return what each is taught."""
    monkeypatch.setattr(selection, "XGBoostModel", Numbered)
    monkeypatch.setattr(Numbered, "taught", [])
    return Numbered.taught


@pytest.mark.parametrize("way", [each for each in WAYS if each != ALL])
def test_a_part_of_the_rows_is_half_random_draws_and_none_twice(way: str) -> None:
    first, second = (chosen_rows(A, way, [B], seed) for seed in (0, 1))
    for found in (first, second):
        assert len(found) == len(set(found)) == 24
        assert {*found[:12]} <= {*A.random}
    assert first[:12] != second[:12]
    assert chosen_rows(A, ALL, [B], 0) == [*range(40)]


def test_the_rest_is_what_is_fastest_or_least_certain_in_rounds(numbered: list[list[Dispatch | None]]) -> None:
    drawn = chosen_rows(A, RANDOM, [], 0)[:12]
    rest = [row for row in range(40) if row not in drawn]
    assert chosen_rows(A, "fastest", [B, C], 0) == [*drawn, *rest[:12]]
    assert chosen_rows(A, "uncertainty", [B, C], 0) == [*drawn, *rest[::-1][:12]]
    dispatches = [each.task.dispatch for each in (B, C, A)]
    assert numbered == [dispatches] * 2, "the others, and what is chosen so far"


def test_the_pool_that_is_ranked_is_known_to_no_model_that_chooses(
    numbered: list[list[Dispatch | None]], tmp_path: Path
) -> None:
    found = list(ranked(POOLS, 1, tmp_path))
    assert [(each.pool, each.way) for each in found] == [(name, way) for name in SHAPES for way in WAYS]
    assert {each.rows for each in found if each.way != ALL} == {48}
    per_pool = len(numbered) // 3
    for number, each in enumerate(POOLS):
        of_pool = numbered[number * per_pool : (number + 1) * per_pool]
        assert of_pool
        assert all(each.task.dispatch not in taught for taught in of_pool)


def accuracies(**by_way: float) -> list[Ranked]:
    """Return how two pools are ranked, the second worse."""
    named = {way.replace("_", " "): value for way, value in by_way.items()}
    return [
        Ranked(name, f"family of {name}", way, 0, 24, value - less)
        for name, less in (("a", 0.0), ("b", 0.1))
        for way, value in named.items()
    ]


def test_uncertainty_becomes_the_default_where_a_part_teaches_as_much_as_all_and_more_than_the_fastest() -> None:
    best = {"random": 0.7, "fastest": 0.78, "uncertainty": 0.8, "all_rows": 0.8}
    assert judgement(accuracies(**best)).verdict is Verdict.DEFAULT
    for changed, why in (({"all_rows": 0.81}, "75"), ({"fastest": 0.8}, "the fastest teach as much")):
        judged = judgement(accuracies(**{**best, **changed}))
        assert judged.verdict is Verdict.OPTION
        assert why in judged.against[0]


def test_a_table_has_the_ends_of_the_families_and_what_is_lost_against_all_rows() -> None:
    found = accuracies(random=0.7, fastest=0.72, uncertainty=0.76, all_rows=0.8)
    table = results_table(found, 1, Publishing(None, (), "command"))
    rows = dict(table.rows)
    assert [*rows] == [*WAYS]
    assert rows[ALL][1] == Figure(0.75, 0.7, 0.8)
    assert rows[ALL][2] is None
    ratio = rows["uncertainty"][2]
    assert isinstance(ratio, Figure)
    assert ratio.median == pytest.approx((0.95 * 0.66 / 0.7) ** 0.5, abs=1e-4)
    assert rows["uncertainty"][-1] == Verdict.OPTION
