"""Records and programs are written in a transaction of the caller, which may hold more than one of them."""

from dataclasses import replace

from sqlalchemy import Connection, func, insert, select

from mlir_sched.database.engine import store_name
from mlir_sched.database.record import Record, StoredProgram
from mlir_sched.database.record_queries import answers, in_context
from mlir_sched.database.schema import PROGRAMS, RECORDS, program_row, read_program, read_record, record_row
from mlir_sched.database.statements import replace_row


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
