"""A cost model is judged beside trees on the same pools, by a gate that was written before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from measured_tasks import draws, measured_task, timed
from numpy.typing import NDArray

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Figure, Machine, MachineResults, ResultTable
from benchmarks.pages.strategies import MODELS, part
from benchmarks.strategies.model_gates import MANY, MODEL_GATES, AgainstTrees, ModelGate, Speed, speed_of
from benchmarks.strategies.pools import Pool, Sources
from benchmarks.strategies.ranking import ORDER, Ranked, results_table
from benchmarks.strategies.verdict import Verdict
from mlir_sched.models import RandomModel, Rows
from mlir_sched.tuning.search_method import COST_MODELS

GATE = ModelGate(Sources.SHAPES, 16, gain=0.02, fit_s=2.0, train_s=10.0, predict_s=0.5)
SPEED = Speed(train_s=4.0, predict_s=0.1)


def ranked(number: int, accuracy: float, own: int = 16, fit_s: float = 1.0) -> Ranked:
    family = ("products", "softmax")[number % 2]
    return Ranked("a", family, Sources.SHAPES, own, accuracy, (1.0, 1.0, 1.0), fit_s, number=number)


def against(gains: list[float], speed: Speed = SPEED, fit_s: float = 1.0) -> AgainstTrees:
    trees = [ranked(number, 0.5 + 0.1 * number) for number in range(len(gains))]
    found = [ranked(number, each.accuracy + gains[number], fit_s=fit_s) for number, each in enumerate(trees)]
    return AgainstTrees(found, trees, speed)


@pytest.mark.parametrize(
    ("compared", "complaints"),
    [
        (against([0.05, -0.01]), []),
        (against([0.05, -0.03]), ["+0.010 pair accuracy over xgboost, where the gate asks for +0.02"]),
        (against([0.05], fit_s=2.5), ["2.5 s for a fit, where the gate asks for 2"]),
        (against([0.05], Speed(20.0, 0.1)), ["20 s for a fit on all rows of the pools, where the gate asks for 10"]),
        (against([0.05], Speed(4.0, 0.75)), [f"0.75 s for {MANY} scores, where the gate asks for 0.5"]),
    ],
)
def test_a_gate_asks_for_accuracy_and_for_seconds(compared: AgainstTrees, complaints: list[str]) -> None:
    judgement = compared.judged(GATE)
    assert judgement.verdict is Verdict.OPTION, "ranking alone makes no default"
    assert list(judgement.against) == [*complaints, "no search was judged with it"]


def test_what_was_not_ranked_as_the_gate_asks_is_said() -> None:
    compared = AgainstTrees([ranked(0, 0.9, own=0)], [ranked(0, 0.5, own=0)], SPEED)
    assert list(compared.judged(GATE).against) == ["not ranked with other shapes, 16 own rows"]


def table_of(compared: AgainstTrees) -> ResultTable:
    notes = tuple(compared.notes(GATE))
    return results_table(
        compared.found, "gaussian-process", Publishing(None, ("x",), "c"), compared.columns(GATE), notes
    )


def test_a_table_compares_pool_by_pool_and_has_the_verdict_where_the_gate_looks() -> None:
    compared = against([0.04, -0.02])
    order = Ranked("a", "products", ORDER, 16, 0.5, (2.0, 1.5, 1.0))
    mixed = [*compared.found, ranked(0, 0.7, own=32), order]
    table = table_of(replace(compared, found=mixed, trees=[*compared.trees, order]))
    rows = {name: dict(zip([each.title for each in table.columns], cells, strict=True)) for name, cells in table.rows}
    over = rows["other shapes, 16 own rows"]["over xgboost"]
    assert isinstance(over, Figure)
    assert (over.median, over.low, over.high) == pytest.approx((0.01, -0.02, 0.04))
    assert rows["other shapes, 16 own rows"]["verdict"] == "option"
    assert rows["other shapes, 32 own rows"]["over xgboost"] is None, "trees ranked nothing there"
    assert rows["random order, 16 own rows"]["over xgboost"] is None
    assert rows["other shapes, 32 own rows"]["verdict"] is None


def test_the_page_has_the_verdict_of_a_model_that_was_ranked() -> None:
    results = {"here": MachineResults(Machine("a machine", "a processor", (), 2), (table_of(against([0.04])),))}
    (row,) = [line for line in part(results, "systems").splitlines() if "gaussian-process" in line]
    assert row.startswith("| GPTune: multitask Gaussian process | `--cost-model gaussian-process` | [here]")
    assert row.endswith("| - | option |")


def test_models_with_a_gate_are_there_and_on_the_page() -> None:
    assert set(MODEL_GATES) == set(COST_MODELS.with_extras) == set(MODELS.values())


def test_the_time_of_many_scores_is_taken_whatever_the_size_of_the_pools() -> None:
    asked = list[int]()

    class Counting(RandomModel):
        def predict(self, rows: Rows) -> NDArray[np.float64]:
            asked.append(len(rows))
            return super().predict(rows)

    speed = speed_of([Pool(measured_task(map(timed, draws(12))))], Counting)
    assert asked == [MANY]
    assert speed.train_s >= 0
    assert speed.predict_s >= 0
