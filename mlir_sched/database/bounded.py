"""The bound of a store of a user: what was used longest ago makes room for what is new."""

import sys
from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, Connection, delete, func, select, update

from mlir_sched.database.engine import store_name
from mlir_sched.database.record import Record, StoredProgram, StoredTask
from mlir_sched.database.schema import PROGRAMS, RECORDS, SEARCHES, TASKS, task_row
from mlir_sched.database.statements import insert_missing_rows
from mlir_sched.database.stored_records import keep_program, settled
from mlir_sched.errors import UserError

MOST_PROGRAMS = 500
"""Most programs of a store of a user: a program of a hundred dispatches takes 10 kB."""


def settle_bounded(
    connection: Connection,
    measured: Sequence[tuple[StoredTask, Sequence[Record]]],
    most_bytes: int,
    programs: Sequence[StoredProgram],
    begun_from: Collection[str] = (),
) -> None:
    """Settle the records of tasks, which are added, too, and programs, in a transaction.

    What lasts is stored beside failures that may not. Tasks that were used longest ago are dropped with their records
    where the store takes more than ``most_bytes`` then, and old programs (:func:`drop_oldest_programs`); it has to be
    an SQLite file.

    Args:
        begun_from: Keys of tasks that others began from, which counts as a use where uses are noted.

    Raises:
        UserError: Runs go on with the store, so that nothing may be dropped from it.
    """
    if connection.scalar(select(SEARCHES.c.id).limit(1)) is not None:
        name = store_name(connection.engine.url)
        raise UserError(f"{name} is the store of runs, which go on with it: give another file, or off")
    if begun_from:
        note_use(connection, TASKS.c.key.in_(begun_from) & (TASKS.c.used > 0))
    for task, records in measured:
        insert_missing_rows(connection, TASKS, ("key",), [task_row(task)])
        note_use(connection, TASKS.c.key == task.key)
        for record in records:
            settled(connection, record, since=sys.maxsize if record.outcome.is_lasting else 0)
    for program in programs:
        keep_program(connection, program)
    drop_oldest_programs(connection)
    drop_longest_unused(connection, most_bytes)


def note_use(connection: Connection, which: ColumnElement[bool]) -> None:
    """Note that tasks are used now, which is later than all other uses."""
    latest = select(func.max(TASKS.c.used)).scalar_subquery()
    connection.execute(update(TASKS).where(which).values(used=latest + 1))


def drop_longest_unused(connection: Connection, most_bytes: int) -> None:
    """Delete the tasks that were used longest ago, with their records, until the rest takes at most so many bytes.

    Tasks of which no use was noted stay.

    The room that this makes in an SQLite file is filled again; the file never becomes smaller.
    """
    while _bytes_in_use(connection) > most_bytes:
        oldest = connection.scalar(select(TASKS.c.key).where(TASKS.c.used > 0).order_by(TASKS.c.used).limit(1))
        if oldest is None:
            return
        connection.execute(delete(RECORDS).where(RECORDS.c.task_key == oldest))
        connection.execute(delete(TASKS).where(TASKS.c.key == oldest))


def _bytes_in_use(connection: Connection) -> int:
    names = ("page_count", "freelist_count", "page_size")
    pages, free, size = (int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()) for name in names)
    return (pages - free) * size


def drop_oldest_programs(connection: Connection) -> None:
    """Delete all programs but the :data:`MOST_PROGRAMS` that were stored last."""
    oldest = select(PROGRAMS.c.id).order_by(PROGRAMS.c.id.desc()).offset(MOST_PROGRAMS).limit(1)
    if (last := connection.scalar(oldest)) is not None:
        connection.execute(delete(PROGRAMS).where(PROGRAMS.c.id <= last))
