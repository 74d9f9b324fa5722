"""What work cost, in the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlir_sched.database import RecordStore
from mlir_sched.database.engine import StoreOutageError
from mlir_sched.database.work_cost import WorkCost, WorkCosts, WorkKind


def test_costs_come_back_by_run_in_the_order_in_which_work_ended(tmp_path: Path) -> None:
    costs = [WorkCost(WorkKind.BUILD, "default", 1, 2.5), WorkCost(WorkKind.CANDIDATES, "a task", 8, 0.25)]
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        for cost in costs:
            store.add_work_cost("one", cost)
        store.add_work_cost("another", costs[0])
    with RecordStore.open(tmp_path / "records.sqlite", read_only=True) as store:
        assert store.work_costs("one") == tuple(costs)
        assert len(store.work_costs()) == 3


def test_work_that_raises_has_no_cost(tmp_path: Path) -> None:
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        counted = WorkCosts(store, "run")
        with pytest.raises(ZeroDivisionError), counted.of(WorkKind.UNTUNED, "a task"):
            raise ZeroDivisionError
        with counted.of(WorkKind.UNTUNED, "a task"):
            pass
        (cost,) = store.work_costs("run")
    assert 0.0 <= cost.seconds < 60.0


def test_a_store_that_refuses_costs_the_figure_and_not_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise StoreOutageError("full", is_held=False)

    with RecordStore.open(tmp_path / "records.sqlite") as store:
        monkeypatch.setattr(store, "add_work_cost", refuse)
        with WorkCosts(store, "run").of(WorkKind.EMISSION, "default"):
            pass
        assert store.work_costs() == ()
