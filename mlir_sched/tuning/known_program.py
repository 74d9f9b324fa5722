"""What earlier runs decided about whole programs, for a run on the same program or on one that changed a little."""

from __future__ import annotations

from collections.abc import Mapping

from mlir_sched.database import RecordStore
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
    programs = store.programs(context_key)
    shared = [len(own & set(program.tasks)) for program in programs]
    most = max(shared, default=0)
    if not most or most < LEAST_SHARED * max(len(own), len(programs[shared.index(most)].tasks)):
        return {}
    return programs[shared.index(most)].decisions
