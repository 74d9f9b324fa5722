"""What the store keeps of runs beside their records: generations, rounds, and what was decided about programs."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlir_sched.database import RecordStore
from mlir_sched.database.record import StoredProgram, measuring_context
from mlir_sched.models import SharedCostModel
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.program.program_space import VARIANT
from mlir_sched.program.variants.choosing import BuiltVariants
from mlir_sched.program.variants.profile_features import profile_features
from mlir_sched.sampling import Value
from mlir_sched.targets.kind import DEFAULT
from mlir_sched.targets.target import Target
from mlir_sched.tasks import Model
from mlir_sched.tasks.task import Task
from mlir_sched.tuning.tuning_run import TuningRun

LEAST_SHARED = 0.5
"""Least share of tasks that two programs have in common where the decisions about one are tried on the other."""


def generation_of(store: RecordStore, *, fresh: bool) -> int:
    """Return how often the user asked for a fresh start in a store, >= 0.

    Args:
        fresh: Whether this run is a fresh start; every fresh start gets a number of its own, also those of other
            processes at the same time.
    """
    generation = 0
    while store.decided(f"fresh-{generation}") is not None:
        generation += 1
    if fresh:
        own = uuid.uuid4().hex
        while store.decide(f"fresh-{generation}", lambda: own) != own:
            generation += 1  # another process was faster
        generation += 1
    return generation


@dataclass(frozen=True)
class RoundLog:
    """The rounds of one search; :meth:`of` makes it.

    Attributes:
        key: Key of the search in the store.
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


def known_decisions(store: RecordStore, context_key: str, default: Model) -> Mapping[str, Value]:
    """Return the decisions about the stored program that shares most tasks with a program; empty where none is close.

    A run that timed no variant beside the default has decided nothing by keeping it.

    Args:
        context_key: What the speed of programs depends on beside the program.
        default: The program, without any decision.
    """
    own = {task.key for task in default.tasks}
    closest = max(store.programs(context_key), key=lambda program: len(own & set(program.task_keys)), default=None)
    if closest is None or len(own & set(closest.task_keys)) < LEAST_SHARED * max(len(own), len(closest.task_keys)):
        return {}
    decided = closest.decisions
    compared = any(closest.variants.values()) or decided.get(VARIANT) != DEFAULT
    return decided if compared else {}


def tuned_program(
    context_key: str,
    variants: BuiltVariants,
    target: Target,
    decisions: Mapping[str, Value],
    ratio: float,
    algorithms: Mapping[str, float],
    unproven: Collection[str] = (),
) -> StoredProgram:
    """Return what is kept of a program at the end of a run, with what was measured of its variants without scripts.

    Args:
        context_key: As in :func:`known_decisions`.
        target: The machine, with the threads of the run.
        decisions: What the run decided about the program.
        ratio: How many times as fast as the untuned program the program is with its scripts.
        algorithms: As of :class:`StoredProgram`.
        unproven: Names of variants that were to be emitted and are not: their first times are not kept.
    """
    default, *others = variants.built
    own = [b for b in others if b.was_run and not b.variant.plan.local_sync and not b.variant.plan.algorithms]
    measured = {b.variant.plan.whole.name: b.measured.ratio for b in own if b.variant.name not in unproven}
    failed = dict.fromkeys(variants.failed if default.was_run else (), 0.0)
    return StoredProgram(
        context_key,
        tuple(sorted({task.key for task in default.model.tasks})),
        decisions,
        ratio,
        profile_features(default, target) if default.was_run else {},
        {**failed, **measured},
        algorithms,
    )


def _key(run: TuningRun, tasks: Sequence[Task], target: Target, context: str) -> str:
    dispatches = [task.dispatch for task in tasks if task.dispatch]
    identity = [
        [task.key for task in tasks],
        [[sketch.name for sketch in run.space.sketches(dispatch, target)] for dispatch in dispatches],
        context,
        *run.options.search_key(),
        *run.method.key(),
        [trace.key for trace in run.start_from],
        *run.transfer.key,
    ]
    return "search-" + hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]
