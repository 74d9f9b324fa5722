"""Tables of the record store, their version, and how records become rows.

A change of the tables raises ``SCHEMA_VERSION`` and adds the step from the version before to ``MIGRATIONS``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    RowMapping,
    String,
    Table,
    Text,
    UniqueConstraint,
    insert,
    inspect,
    select,
    update,
)

from mlir_sched.database.migrations import to_version_2, to_version_3, to_version_4, to_version_5, to_version_6
from mlir_sched.database.record import Origin, Record, StoredProgram, StoredTask, utc_now
from mlir_sched.errors import Failure, FailureClass, UserError
from mlir_sched.outcome import Outcome, Timing, Verdict
from mlir_sched.trace import Trace

SCHEMA_VERSION = 6

MIGRATIONS: dict[int, Callable[[Connection], None]] = {
    1: to_version_2,
    2: to_version_3,
    3: to_version_4,
    4: to_version_5,
    5: to_version_6,
}
"""By schema version, the step to the next version; it runs inside the transaction that changes the version."""

METADATA = MetaData()
_KEY = String(255)
_ROW_ID = BigInteger().with_variant(Integer(), "sqlite")

SCHEMA = Table("mlir_sched_schema", METADATA, Column("version", Integer, nullable=False))

TASKS = Table(
    "tasks",
    METADATA,
    Column("id", _ROW_ID, primary_key=True),
    Column("key", _KEY, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("target_key", _KEY, nullable=False),
    Column("target_description", Text, nullable=False),
    Column("compiler", Text, nullable=False),
    Column("flags", Text, nullable=False),
    Column("created", Text, nullable=False),
)

RECORDS = Table(
    "records",
    METADATA,
    Column("id", _ROW_ID, primary_key=True),
    Column("task_key", _KEY, ForeignKey("tasks.key"), nullable=False),
    Column("context_key", _KEY, nullable=False),
    Column("candidate_key", _KEY, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("origin", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("median_s", Float(53)),
    Column("ratio", Float(53)),
    Column("failure", Text),
    Column("failure_message", Text),
    Column("timing", Text),
    Column("binary_hash", Text, nullable=False),
    Column("round", Integer, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("tool", Text, nullable=False),
    Column("created", Text, nullable=False),
    Column("trace", Text),
    Column("script", Text, nullable=False),
    UniqueConstraint("task_key", "context_key", "candidate_key", "attempt"),
    Index("records_in_order", "task_key", "context_key", "id"),
)

PROGRAMS = Table(
    "programs",
    METADATA,
    Column("id", _ROW_ID, primary_key=True),
    Column("key", _KEY, nullable=False, unique=True),
    Column("context_key", _KEY, nullable=False),
    Column("tasks", Text, nullable=False),
    Column("decisions", Text, nullable=False),
    Column("ratio", Float(53), nullable=False),
    Column("created", Text, nullable=False),
)

RUNS = Table(
    "runs",
    METADATA,
    Column("id", _ROW_ID, primary_key=True),
    Column("key", _KEY, nullable=False, unique=True),
    Column("settings", Text, nullable=False),
    Column("created", Text, nullable=False),
)

ROUNDS = Table(
    "rounds",
    METADATA,
    Column("run_key", _KEY, ForeignKey("runs.key"), primary_key=True),
    Column("round", Integer, primary_key=True, autoincrement=False),
    Column("data", Text, nullable=False),
)

DECISIONS = Table(
    "decisions",
    METADATA,
    Column("id", _ROW_ID, primary_key=True),
    Column("key", _KEY, nullable=False, unique=True),
    Column("value", Text, nullable=False),
    Column("created", Text, nullable=False),
)

CLOCKS = Table(
    "clocks",
    METADATA,
    Column("key", _KEY, primary_key=True),
    Column("seconds", Float(53), nullable=False),
)

MODELS = Table(
    "models",
    METADATA,
    Column("key", _KEY, primary_key=True),
    Column("data", LargeBinary, nullable=False),
    Column("created", Text, nullable=False),
)


def stored_version(connection: Connection, name: str) -> int | None:
    """Return the schema version of a store, or None when the database has no table at all.

    Raises:
        UserError: The database is not a record store, or its schema is newer than this program's.
    """
    tables = inspect(connection).get_table_names()
    if not tables:
        return None
    version = connection.scalar(select(SCHEMA.c.version)) if SCHEMA.name in tables else None
    if version is None:
        raise UserError(f"{name} is a database but not a record store of mlir-sched: give another file or URL")
    if version > SCHEMA_VERSION:
        raise UserError(
            f"{name} has schema version {version}, this mlir-sched reads up to version {SCHEMA_VERSION}: "
            "update mlir-sched, or give another store"
        )
    return int(version)


def create_or_migrate(connection: Connection, name: str) -> None:
    """Bring the database to ``SCHEMA_VERSION`` inside the caller's transaction.

    Raises:
        UserError: No migration leads from the stored version to this program's.
    """
    version = stored_version(connection, name)
    if version is None:
        METADATA.create_all(connection)
        connection.execute(insert(SCHEMA).values(version=SCHEMA_VERSION))
        return
    for step in range(version, SCHEMA_VERSION):
        if step not in MIGRATIONS:
            raise UserError(
                f"{name} has schema version {version}, which this mlir-sched (schema version {SCHEMA_VERSION}) can no "
                "longer read: give another store, or use the mlir-sched that wrote it"
            )
        MIGRATIONS[step](connection)
    if version < SCHEMA_VERSION:
        connection.execute(update(SCHEMA).values(version=SCHEMA_VERSION))


def dump_json(data: object) -> str:
    """Return JSON text; numpy scalars become plain numbers."""
    return json.dumps(data, default=lambda scalar: scalar.item())


def task_row(task: StoredTask) -> dict[str, Any]:
    """Return the columns of a task."""
    return vars(task) | {"flags": dump_json(task.flags), "created": utc_now()}


def row_task(row: RowMapping) -> StoredTask:
    """Return the task of a row."""
    return StoredTask(
        key=row["key"],
        name=row["name"],
        description=row["description"],
        target_key=row["target_key"],
        target_description=row["target_description"],
        compiler=row["compiler"],
        flags=tuple(json.loads(row["flags"])),
    )


def program_row(program: StoredProgram) -> dict[str, Any]:
    """Return the columns of a program."""
    return {
        "key": program.key,
        "context_key": program.context_key,
        "tasks": dump_json(program.tasks),
        "decisions": dump_json(program.decisions),
        "ratio": float(program.ratio),
        "created": utc_now(),
    }


def row_program(row: RowMapping) -> StoredProgram:
    """Return the program of a row."""
    tasks, decisions = tuple(json.loads(row["tasks"])), json.loads(row["decisions"])
    return StoredProgram(row["context_key"], tasks, decisions, row["ratio"])


def record_row(record: Record) -> dict[str, Any]:
    """Return the columns of a record.

    Raises:
        ValueError: Its timing is none that can be read again (:meth:`Timing.check`).
    """
    timing, failure = record.outcome.timing, record.outcome.failure
    if timing is not None:
        timing.check()
    return {
        "task_key": record.task_key,
        "context_key": record.context_key,
        "candidate_key": record.candidate_key,
        "attempt": int(record.attempt),
        "origin": record.origin.value,
        "verdict": record.outcome.verdict.value,
        "median_s": float(timing.median_s) if timing else None,
        "ratio": float(timing.ratio) if timing else None,
        "failure": failure.kind.value if failure else None,
        "failure_message": _storable(failure.message) if failure else None,
        "timing": dump_json(timing.to_json()) if timing else None,
        "binary_hash": record.outcome.binary_hash,
        "round": int(record.round),
        "seed": int(record.seed),
        "tool": record.tool,
        "created": record.created,
        "trace": dump_json(record.trace.to_json()) if record.trace else None,
        "script": record.script,
    }


def row_record(row: RowMapping) -> Record:
    """Return the record of a row."""
    timing = Timing.from_json(json.loads(row["timing"])) if row["timing"] is not None else None
    failure = Failure(FailureClass(row["failure"]), row["failure_message"]) if row["failure"] is not None else None
    return Record(
        task_key=row["task_key"],
        context_key=row["context_key"],
        candidate_key=row["candidate_key"],
        origin=Origin(row["origin"]),
        trace=Trace.from_json(json.loads(row["trace"])) if row["trace"] is not None else None,
        script=row["script"],
        outcome=Outcome(timing, failure, row["binary_hash"], verdict=Verdict(row["verdict"])),
        round=row["round"],
        seed=row["seed"],
        attempt=row["attempt"],
        tool=row["tool"],
        created=row["created"],
    )


def _storable(text: str) -> str:
    """Return the text with escapes in place of the characters that databases refuse (lone surrogates, NUL)."""
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
