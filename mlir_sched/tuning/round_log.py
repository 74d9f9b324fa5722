"""The rounds of a program's search as the store keeps them: a resumed search knows which rounds were begun."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlir_sched.database import RecordStore
from mlir_sched.database.record import measuring_context
from mlir_sched.models import SharedCostModel
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.tuning.tuning_run import TuningRun


@dataclass(frozen=True)
class RoundLog:
    """The rounds of one search; :meth:`of` makes it.

    Attributes:
        store: Where the rounds are kept.
        key: Key of the search in the store.
        context: Context key of its records.
        last_record: Number of the last record from before the search first began; a resumed search sees the same
            earlier records.
        rounds: Rounds that had been begun when this process began with the search.
        trials: Candidates that had been tried by then.
    """

    store: RecordStore
    key: str
    context: str
    last_record: int
    rounds: int
    trials: int

    @staticmethod
    def of(run: TuningRun, tasks: Sequence[Task], target: Target) -> RoundLog:
        """Return the log of the search over some tasks on a target; the search begins now or is resumed."""
        context = measuring_context(target, generation=run.generation)
        key = _key(run, tasks, target, context)
        last_record, rounds = run.store.begin_search(key), run.store.rounds(key)
        return RoundLog(run.store, key, context, last_record, len(rounds), rounds[-1] if rounds else 0)

    def had_begun(self, rounds: int, tried: int) -> bool:
        """Say whether an earlier process began more than ``rounds`` rounds or tried more than ``tried`` candidates."""
        return rounds < self.rounds or tried < self.trials

    def save(self, rounds: int, tried: int) -> None:
        """Keep how many rounds were begun and candidates tried, unless earlier processes had come as far."""
        if (rounds, tried) > (self.rounds, self.trials):
            self.store.save_round(self.key, rounds - 1, tried)

    def save_model(self, model: SharedCostModel) -> None:
        """Keep the cost model beside the records that it was fitted to, under the key of the search."""
        if not model.fitted:
            return
        with temporary_folder() as folder:
            path = Path(folder) / "model"
            model.save(path)
            self.store.save_cost_model(self.key, path.read_bytes())


def _key(run: TuningRun, tasks: Sequence[Task], target: Target, context: str) -> str:
    dispatches = [task.dispatch for task in tasks if task.dispatch]
    identity = [
        [task.key for task in tasks],
        [[sketch.name for sketch in run.space.sketches(dispatch, target)] for dispatch in dispatches],
        context,
        *run.options.search_key(),
        *run.method.key(),
        [trace.key for trace in run.start_from],
    ]
    return "search-" + hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]
