"""The search of one task whose scripts are made at once and evaluated at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from replayed_run import QUICK, TARGET, matmul_dispatch, task_of
from speedups import timing

from mlir_sched.database import RecordStore
from mlir_sched.database.record import StoredTask, measuring_context, script_key
from mlir_sched.evaluation.evaluator import Evaluator
from mlir_sched.evaluation.task_records import TaskRecords
from mlir_sched.models import SharedCostModel, XGBoostModel
from mlir_sched.outcome import Outcome
from mlir_sched.search import EvolutionarySearch, RandomSearch
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.tuning.task_history import TaskHistory
from mlir_sched.tuning.task_search import TaskSearch

TASK = task_of("matmul", matmul_dispatch(384, 256, 512))
CONTEXT = measuring_context(TARGET)


class PlainScripts(DesignSpace):
    """A design space whose scripts are texts of the usual length that name their trace."""

    def script(self, trace: Trace, applied: str | None = None) -> str:
        del applied
        return f"script {trace.key}".ljust(11_000)


def task_search(
    store: RecordStore, *, starts: Sequence[Trace] = (), evolution: bool = False, **stored: Any
) -> TaskSearch:
    """Return the search of a task in a store that knows the task; ``stored`` are further fields of its records."""
    assert TASK.dispatch is not None
    store.add_task(StoredTask.of(TASK, TARGET))
    space, rng = PlainScripts(Space.default(TARGET), TASK.dispatch, TARGET), np.random.default_rng(0)
    model = SharedCostModel(XGBoostModel())
    strategy = EvolutionarySearch(space, rng, model, QUICK) if evolution else RandomSearch(space, rng)
    records, history = TaskRecords(store, TASK.key, CONTEXT, 0, **stored), TaskHistory(timing(1e-3, 1.0))
    return TaskSearch(TASK, space, strategy, records, history, starts)


class AtOnce(Evaluator):
    """An evaluator that returns a time at once; every script compiles to a program of its own."""

    def untuned(self, task: Task, following: Sequence[Task] = ()) -> Outcome:
        del task, following
        return Outcome(timing(1e-3, 1.0), None)

    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        del task, known
        for index, script in enumerate(scripts):
            yield index, Outcome(timing(1e-3, 1.0), None, script_key(script))


def run_round(search: TaskSearch, evaluator: Evaluator, *, size: int = 8, limit: int = 8) -> None:
    """Run one round of a task's search."""
    rounds = search.round(size, limit)
    try:
        while True:
            next(rounds).run(evaluator)
    except StopIteration:
        pass
