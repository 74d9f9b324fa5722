"""Tables of the record store, how records become rows, and how rows are written."""

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

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
    delete,
    insert,
    select,
)

from mlir_sched.database.record import Origin, Record, StoredProgram, StoredTask, utc_now
from mlir_sched.errors import Failure, FailureClass
from mlir_sched.outcome import Outcome, Timing, Verdict
from mlir_sched.trace import Trace

METADATA = MetaData()
_KEY = String(255)
_ROW_ID = BigInteger().with_variant(Integer(), "sqlite")

SCHEMA = Table(
    "mlir_sched_schema",
    METADATA,
    Column("version", Integer, nullable=False),
    Column("digest", Text, nullable=False),
)

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
    Column("task_keys", Text, nullable=False),
    Column("decisions", Text, nullable=False),
    Column("ratio", Float(53), nullable=False),
    Column("created", Text, nullable=False),
)

SEARCHES = Table(
    "searches",
    METADATA,
    Column("id", _ROW_ID, primary_key=True),
    Column("key", _KEY, nullable=False, unique=True),
    Column("last_record", BigInteger, nullable=False),
    Column("created", Text, nullable=False),
)

ROUNDS = Table(
    "rounds",
    METADATA,
    Column("search_key", _KEY, ForeignKey("searches.key"), primary_key=True),
    Column("round", Integer, primary_key=True, autoincrement=False),
    Column("trials", Integer, nullable=False),
)

COST_MODELS = Table(
    "cost_models",
    METADATA,
    Column("search_key", _KEY, ForeignKey("searches.key"), primary_key=True),
    Column("data", LargeBinary, nullable=False),
    Column("created", Text, nullable=False),
)

RUN_DECISIONS = Table(
    "run_decisions",
    METADATA,
    Column("id", _ROW_ID, primary_key=True),
    Column("key", _KEY, nullable=False, unique=True),
    Column("value", Text, nullable=False),
    Column("created", Text, nullable=False),
)

CLOCKS = Table("clocks", METADATA, Column("key", _KEY, primary_key=True), Column("spent_s", Float(53), nullable=False))

WORK_COSTS = Table(
    "work_costs",
    METADATA,
    Column("id", _ROW_ID, primary_key=True),
    Column("run_key", _KEY, nullable=False, index=True),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("count", Integer, nullable=False),
    Column("seconds", Float(53), nullable=False),
    Column("created", Text, nullable=False),
)
Row: TypeAlias = Mapping[str, Any]
"""Column values by name."""
_CHUNK = 500
"""Maximum number of keys in one query; databases limit the parameters of a statement."""


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
        "task_keys": dump_json(program.task_keys),
        "decisions": dump_json(program.decisions),
        "ratio": float(program.ratio),
        "created": utc_now(),
    }


def row_program(row: RowMapping) -> StoredProgram:
    """Return the program of a row."""
    task_keys, decisions = tuple(json.loads(row["task_keys"])), json.loads(row["decisions"])
    return StoredProgram(row["context_key"], task_keys, decisions, row["ratio"])


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


def insert_missing(connection: Connection, table: Table, keys: Sequence[str], rows: Sequence[Row]) -> list[int]:
    """Insert the rows whose key columns are not in the table yet, on any database; return their positions, ascending.

    Of several given rows with the same key the first is inserted.

    Raises:
        sqlalchemy.exc.IntegrityError: Another transaction inserted one of the rows at the same moment (never on SQLite,
            where a writing transaction is alone); call this function again in a new transaction.
    """
    first = {tuple(row[key] for key in keys): position for position, row in reversed(list(enumerate(rows)))}
    known = _known_keys(connection, table, keys, first)
    missing = sorted(position for key, position in first.items() if key not in known)
    if missing:
        connection.execute(insert(table), [rows[position] for position in missing])
    return missing


def _known_keys(
    connection: Connection, table: Table, keys: Sequence[str], wanted: Mapping[tuple[Any, ...], int]
) -> set[tuple[Any, ...]]:
    """Return which of the wanted keys are in the table."""
    columns = [table.c[key] for key in keys]
    known: set[tuple[Any, ...]] = set()
    for leading, group in itertools.groupby(sorted(wanted), key=lambda key: key[:-1]):
        last = [key[-1] for key in group]
        same_leading = [column == value for column, value in zip(columns, leading, strict=False)]
        for start in range(0, len(last), _CHUNK):
            query = select(columns[-1]).where(*same_leading, columns[-1].in_(last[start : start + _CHUNK]))
            known.update((*leading, value) for value in connection.scalars(query))
    return known


def replace_row(connection: Connection, table: Table, keys: Sequence[str], row: Row) -> None:
    """Insert a row; it replaces a row with the same key columns."""
    connection.execute(delete(table).where(*(table.c[key] == row[key] for key in keys)))
    connection.execute(insert(table), row)
