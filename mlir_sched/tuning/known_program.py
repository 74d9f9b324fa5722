"""What earlier runs decided about whole programs, for a run on the same program or on one that changed a little."""

from __future__ import annotations

from collections.abc import Mapping

from mlir_sched.database import RecordStore
from mlir_sched.database.record import StoredProgram
from mlir_sched.sampling import Value
from mlir_sched.tasks import Model

LEAST_SHARED = 0.5
"""Least share of the tasks of a program that another one has to have, too, for its decisions to be tried."""


def known_decisions(store: RecordStore, context_key: str, default: Model) -> Mapping[str, Value]:
    """Return the decisions about the stored program that shares most tasks with a program; none where none is close.

    Args:
        store: The store.
        context_key: What the speed of programs depends on beside the program.
        default: The program, without any decision.
    """
    own = {task.key for task in default.tasks}
    closest = max(store.programs(context_key), key=lambda program: len(own & set(program.task_keys)), default=None)
    if closest is None or len(own & set(closest.task_keys)) < LEAST_SHARED * max(len(own), len(closest.task_keys)):
        return {}
    return closest.decisions


def keep_decisions(
    store: RecordStore, context_key: str, default: Model, decisions: Mapping[str, Value], ratio: float
) -> None:
    """Keep what a run decided about a program, unless the store knows something faster.

    Args:
        store, context_key, default: As in :func:`known_decisions`.
        decisions: The decisions by name.
        ratio: How many times as fast as the untuned program the program is with its scripts.
    """
    task_keys = tuple(sorted({task.key for task in default.tasks}))
    store.keep_program(StoredProgram(context_key, task_keys, decisions, ratio))
