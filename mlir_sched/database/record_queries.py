"""Conditions and queries on the records of a store."""

from typing import Any

from sqlalchemy import ColumnElement, Select, or_, select

from mlir_sched.database.record import Origin
from mlir_sched.database.schema import RECORDS
from mlir_sched.errors import LASTING


def in_context(task_key: str, context_key: str) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions for the records of a task in a context."""
    return RECORDS.c.task_key == task_key, RECORDS.c.context_key == context_key


def scripts_in(task_key: str, context_key: str) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions for those of scripts, which untuned code is not."""
    return *in_context(task_key, context_key), RECORDS.c.origin == Origin.SCRIPT.value


def lasts() -> ColumnElement[bool]:
    """Return the condition for records whose outcome lasts (:attr:`Outcome.is_lasting`)."""
    return or_(RECORDS.c.failure.is_(None), RECORDS.c.failure.in_([kind.value for kind in LASTING]))


def lasting_scripts(task_key: str, context_key: str, until: int) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions for lasting records of scripts up to a record by its number."""
    return *in_context(task_key, context_key), RECORDS.c.id <= until, RECORDS.c.trace.is_not(None), lasts()


def answers(task_key: str, context_key: str, candidate_key: str, since: int) -> Select[Any]:
    """Return the query for the record that makes measuring a candidate unnecessary (:meth:`RecordStore.find`).

    The order is that of the unique index, which finds the candidate; in the order of all records SQLite looks at each
    record of the task.
    """
    return (
        select(RECORDS)
        .where(*in_context(task_key, context_key), RECORDS.c.candidate_key == candidate_key)
        .where(or_(lasts(), RECORDS.c.id > since))
        .order_by(RECORDS.c.attempt)
        .limit(1)
    )
