"""Tables of the record store, and how records become rows."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import (
    BigInteger,
    Column,
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
)

from mlir_sched.compiler.reasons import reason
from mlir_sched.database.record import Origin, Record, StoredProgram, StoredTask, utc_now
from mlir_sched.database.serialisation import dump, load
from mlir_sched.database.work_cost import WorkCost, WorkKind
from mlir_sched.errors import Failure, FailureClass, IllegalTraceError, UserError
from mlir_sched.outcome import Outcome, Timing, Verdict
from mlir_sched.payload import Dispatch
from mlir_sched.targets.target import Target
from mlir_sched.trace import Trace, key_of_json

T = TypeVar("T")
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
    Column("dispatch", Text, comment="JSON of its ops"),
    Column("target", Text, nullable=False, comment="JSON of what it is tuned for"),
    Column("used", BigInteger, nullable=False, comment="order of last uses; 0 but in the store over all runs"),
    Column("created", Text, nullable=False),
    Index("tasks_by_use", "used"),
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
    Column("features", Text, nullable=False, comment="JSON: where the time of the untuned program goes"),
    Column("variants", Text, nullable=False, comment="JSON: ratio of every variant without scripts, by name; 0: fails"),
    Column("algorithms", Text, nullable=False, comment="JSON: ratio of other algorithms to what they replace"),
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
_TEXTS = ("task_key", "context_key", "candidate_key", "script", "tool", "created")
_NUMBERS = ("round", "seed", "attempt")
"""Columns with the values of a record's fields of the same names."""


def dump_json(data: object) -> str:
    """Return JSON text; numpy scalars become plain numbers."""
    return json.dumps(data, default=lambda scalar: scalar.item())


def task_row(task: StoredTask) -> dict[str, Any]:
    """Return the columns of a task that no run has added to yet."""
    documents = {"dispatch": dump(task.dispatch) if task.dispatch else None, "target": dump(task.target)}
    return vars(task) | documents | {"flags": dump_json(task.flags), "used": 0, "created": utc_now()}


def read_task(row: RowMapping, store: str) -> StoredTask:
    """Return the task of a row of a store; raises as :func:`read_record`."""
    return _parsed(_row_task, row, store, "task")


def _row_task(row: RowMapping) -> StoredTask:
    columns = {each.name: row[each.name] for each in fields(StoredTask)}
    flags, target = tuple(json.loads(row["flags"])), load(Target, row["target"])
    dispatch = load(Dispatch, row["dispatch"]) if row["dispatch"] is not None else None
    return StoredTask(**columns | {"flags": flags, "dispatch": dispatch, "target": target})


_PROGRAM_DOCUMENTS = ("task_keys", "decisions", "features", "variants", "algorithms")
"""Columns of a program that are JSON."""


def program_row(program: StoredProgram) -> dict[str, Any]:
    """Return the columns of a program."""
    documents = {name: dump_json(getattr(program, name)) for name in _PROGRAM_DOCUMENTS}
    return vars(program) | documents | {"key": program.key, "ratio": float(program.ratio), "created": utc_now()}


def read_program(row: RowMapping, store: str) -> StoredProgram:
    """Return the program of a row of a store; raises as :func:`read_record`."""
    return _parsed(_row_program, row, store, "program")


def _row_program(row: RowMapping) -> StoredProgram:
    task_keys, *documents = (json.loads(row[name]) for name in _PROGRAM_DOCUMENTS)
    decisions, *numbers = map(dict, documents)
    features, variants, algorithms = ({name: float(each[name]) for name in each} for each in numbers)
    works = filter(None, variants.values())  # 0 is one that fails
    if not all(0 < ratio < math.inf for ratio in (*works, *algorithms.values())):
        raise ValueError("a ratio that is not positive")
    if not all(map(math.isfinite, features.values())):
        raise ValueError("a number that is not finite")
    known = row["context_key"], tuple(task_keys), decisions, row["ratio"]
    return StoredProgram(*known, features, variants, algorithms)


def read_work_cost(row: RowMapping, store: str) -> WorkCost:
    """Return the cost of a row of a store; raises as :func:`read_record`."""
    return _parsed(
        lambda row: WorkCost(WorkKind(row["kind"]), row["subject"], row["count"], row["seconds"]), row, store, "cost"
    )


def read_decision(row: RowMapping, store: str) -> Any:
    """Return the JSON data of what a run decided; raises as :func:`read_record`."""
    return _parsed(lambda row: json.loads(row["value"]), row, store, "decision")


def record_row(record: Record) -> dict[str, Any]:
    """Return the columns of a record.

    Raises:
        ValueError: Its timing is none that can be read again (:meth:`Timing.check`).
    """
    timing, failure = record.outcome.timing, record.outcome.failure
    if timing is not None:
        timing.check()
    numbers = {name: int(getattr(record, name)) for name in _NUMBERS}
    return (
        {name: getattr(record, name) for name in _TEXTS}
        | numbers
        | {
            "origin": record.origin.value,
            "verdict": record.outcome.verdict.value,
            "median_s": float(timing.median_s) if timing else None,
            "ratio": float(timing.ratio) if timing else None,
            "failure": failure.kind.value if failure else None,
            "failure_message": _storable(failure.message) if failure else None,
            "timing": dump_json(timing.to_json()) if timing else None,
            "binary_hash": record.outcome.binary_hash,
            "trace": dump_json(record.trace.to_json()) if record.trace else None,
        }
    )


def read_record(row: RowMapping, store: str) -> Record:
    """Return the record of a row of a store.

    Raises:
        UserError: The row holds what no mlir-sched writes.
    """
    return _parsed(_row_record, row, store)


def _row_record(row: RowMapping) -> Record:
    timing = _row_timing(row) if row["timing"] is not None else None
    failure = Failure(FailureClass(row["failure"]), row["failure_message"]) if row["failure"] is not None else None
    return Record(
        **{name: row[name] for name in (*_TEXTS, *_NUMBERS)},
        origin=Origin(row["origin"]),
        trace=Trace.from_json(json.loads(row["trace"])) if row["trace"] is not None else None,
        outcome=Outcome(timing, failure, row["binary_hash"], verdict=Verdict(row["verdict"])),
    )


def read_timing(row: RowMapping, store: str) -> Timing:
    """Return the timing of a record that has one; raises as :func:`read_record`."""
    return _parsed(_row_timing, row, store)


def _row_timing(row: RowMapping) -> Timing:
    return Timing.from_json(json.loads(row["timing"]))


def read_trace_key(row: RowMapping, store: str) -> str:
    """Return the key of a record's trace, whose decisions are not looked at; raises as :func:`read_record`."""
    return _parsed(lambda row: key_of_json(json.loads(row["trace"])), row, store)


def _parsed(parse: Callable[[RowMapping], T], row: RowMapping, store: str, what: str = "record") -> T:
    try:
        return parse(row)
    except (ValueError, TypeError, AttributeError, RecursionError, IllegalTraceError) as error:
        raise UserError(
            f"the record store {store}: its {what} number {row['id']} cannot be read ({reason(str(error))}); "
            "give another store, or delete that row"
        ) from error


def _storable(text: str) -> str:
    """Return the text with escapes in place of the characters that databases refuse (lone surrogates, NUL)."""
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
