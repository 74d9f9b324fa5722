"""A search that goes on with another program has one cost model for all its tasks, and keeps what it learnt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from plans import flagged
from replayed_run import QUICK, matmul_dispatch, program_search, searched, task_of
from speedups import Factor, Speedups

from mlir_sched.database import RecordStore
from mlir_sched.models import Measured, XGBoostModel
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.tasks import Model
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.search_method import SearchMethod

KEPT, LEFT = task_of("kept", matmul_dispatch(64, 96, 32)), task_of("left", matmul_dispatch(128, 64, 48))
NEW = task_of("new", matmul_dispatch(96, 96, 64))
FACTORS: dict[str, Factor] = {"kept": lambda n: 1.0 + n / 9, "left": lambda n: 1.0 + n / 7, "new": 2.0}


class Told(XGBoostModel):
    """Keeps how many tasks it was fitted on last, and is one of several."""

    made: list[Told] = []  # noqa: RUF012 - one list for all
    tasks = 0

    def __init__(self) -> None:
        super().__init__()
        self.made.append(self)

    def fit(self, tasks: Sequence[Measured]) -> None:
        self.tasks = len(tasks)
        super().fit(tasks)


def test_the_tasks_that_a_composed_program_brings_share_the_model_of_those_that_it_keeps() -> None:
    Told.made.clear()
    method = SearchMethod(QUICK, Told)
    evaluator = Speedups(FACTORS)
    with RecordStore.open("sqlite://") as store:
        before = program_search(TuneOptions(trials=40, round_size=8), store, [KEPT, LEFT], method=method)
        for work in before.work(replace(before.run.budget.rest(elsewhere=0), trials=24)):
            work.run(evaluator)
        composed = BuiltVariant(flagged("composed"), Model("model.mlir", (), (KEPT, NEW), ()), b"", None, ())
        after = searched(before.continued_on(composed), evaluator)
        assert {search.task.name for search in after.searches} == {"kept", "new"}
        (model,) = Told.made
        assert model.tasks == 3, "what was learnt of a task that is not searched any more counts, too"
        assert after.log is not None
        assert store.load_cost_model(after.log.key) is not None
