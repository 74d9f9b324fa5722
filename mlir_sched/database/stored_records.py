"""Queries on records, and how records and programs are written, in a transaction of the caller."""

from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, insert, or_, select

from mlir_sched.database.engine import store_name
from mlir_sched.database.record import Origin, Record, StoredProgram
from mlir_sched.database.schema import PROGRAMS, RECORDS, program_row, read_program, read_record, record_row
from mlir_sched.database.statements import replace_row
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


def settled(connection: Connection, record: Record, since: int) -> Record:
    """Return the stored record of a candidate, or store the given one: :meth:`RecordStore.settle`."""
    found = connection.execute(answers(*record.key[:3], since)).mappings().first()
    if found is not None:
        return read_record(found, store_name(connection.engine.url))
    task_key, context_key, candidate_key, _ = record.key
    same = *in_context(task_key, context_key), RECORDS.c.candidate_key == candidate_key
    last = connection.scalar(select(func.max(RECORDS.c.attempt)).where(*same))
    stored = replace(record, attempt=0 if last is None else last + 1)
    connection.execute(insert(RECORDS), [record_row(stored)])
    return stored


def keep_program(connection: Connection, program: StoredProgram) -> None:
    """Store what a run decided about a program, beside what is known of it (:meth:`StoredProgram.beside`)."""
    row = connection.execute(select(PROGRAMS).where(PROGRAMS.c.key == program.key)).mappings().first()
    known = None if row is None else read_program(row, store_name(connection.engine.url))
    replace_row(connection, PROGRAMS, ("key",), program_row(program.beside(known)))
