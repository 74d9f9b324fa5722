"""What work cost, in the store."""

from __future__ import annotations

from pathlib import Path

from mlir_sched.database import RecordStore
from mlir_sched.database.work_cost import WorkCost, WorkKind


def test_costs_come_back_by_run_in_the_order_in_which_work_ended(tmp_path: Path) -> None:
    costs = [WorkCost(WorkKind.BUILD, "default", 1, 2.5), WorkCost(WorkKind.CANDIDATES, "a task", 8, 0.25)]
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        for cost in costs:
            store.add_work_cost("one", cost)
        store.add_work_cost("another", costs[0])
    with RecordStore.open(tmp_path / "records.sqlite", read_only=True) as store:
        assert store.work_costs("one") == tuple(costs)
        assert len(store.work_costs()) == 3
