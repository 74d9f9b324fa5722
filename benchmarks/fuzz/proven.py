"""Whether what a run emits is what its store has proven."""

from __future__ import annotations

from mlir_sched.database import RecordStore
from mlir_sched.database.record import Record
from mlir_sched.tuned_folder.result import DispatchResult, TuneResult

SURPRISE = 2.0
"""Factor by which the reported speed-up of a script may lie above the interval of its record: other work on the machine
disturbs short sessions by tens of percent, and code that computes less than it should is faster by more."""


def unproven(result: TuneResult) -> str:
    """Return an emitted script that no record of its store stands for; empty when there is none.

    A record stands for a script if it has the same sketch and decisions, its numbers are right, and the script is not
    reported as faster than the interval of the record's ratio times :data:`SURPRISE`.
    """
    with RecordStore.open(result.store, read_only=True) as store:
        for dispatch in result.dispatches:
            if dispatch.tuned is not None and not any(_stands(each, dispatch) for each in _records(store, dispatch)):
                reported = f"{dispatch.tuned.ratio:.2f} times as fast"
                return f"{dispatch.name}: {dispatch.what_changed} ({reported})"
    return ""


def _records(store: RecordStore, dispatch: DispatchResult) -> list[Record]:
    return [
        record for context in store.contexts(dispatch.task_key) for record in store.records(dispatch.task_key, context)
    ]


def _stands(record: Record, dispatch: DispatchResult) -> bool:
    """Say whether a record is that of the script of a dispatch, and as fast."""
    valid = record.outcome.valid
    if valid is None or record.trace is None or dispatch.tuned is None:
        return False
    same = record.trace.sketch == dispatch.sketch and record.trace.values == dict(dispatch.decisions or {})
    return bool(same and dispatch.tuned.ratio <= SURPRISE * valid.ratio_high)
