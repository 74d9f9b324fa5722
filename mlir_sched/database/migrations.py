"""Steps from one schema version to the next; each defines the tables as they were then, not as they are now."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
    column,
    delete,
    insert,
    select,
    table,
    update,
)

_KEY = String(255)
_ROW_ID = BigInteger().with_variant(Integer(), "sqlite")


def to_version_2(connection: Connection) -> None:
    """Give records an attempt number, and drop the columns that are the same for a whole task: compiler and flags.

    SQLite cannot change a unique constraint, so the table is made anew. The records of version 1 stay under their old
    keys; queries no longer find them, because newer keys hold a processor and a script's digest.
    """
    kept = (
        "task_key, context_key, candidate_key, origin, median_s, ratio, failure, failure_message, timing, "
        "binary_hash, batch, seed, tool, created, trace, script"
    )
    connection.exec_driver_sql("DROP INDEX records_in_order")
    connection.exec_driver_sql("ALTER TABLE records RENAME TO records_of_version_1")
    _records_of_version_2().create(connection)
    connection.exec_driver_sql(
        f"INSERT INTO records (attempt, {kept}) SELECT 0, {kept} FROM records_of_version_1 ORDER BY id"
    )
    connection.exec_driver_sql("DROP TABLE records_of_version_1")


def _records_of_version_2() -> Table:
    metadata = MetaData()
    Table("tasks", metadata, Column("key", _KEY, unique=True))
    return Table(
        "records",
        metadata,
        Column("id", _ROW_ID, primary_key=True),
        Column("task_key", _KEY, ForeignKey("tasks.key"), nullable=False),
        Column("context_key", _KEY, nullable=False),
        Column("candidate_key", _KEY, nullable=False),
        Column("attempt", Integer, nullable=False),
        Column("origin", Text, nullable=False),
        Column("median_s", Float(53)),
        Column("ratio", Float(53)),
        Column("failure", Text),
        Column("failure_message", Text),
        Column("timing", Text),
        Column("binary_hash", Text, nullable=False),
        Column("batch", Integer, nullable=False),
        Column("seed", BigInteger, nullable=False),
        Column("tool", Text, nullable=False),
        Column("created", Text, nullable=False),
        Column("trace", Text),
        Column("script", Text, nullable=False),
        UniqueConstraint("task_key", "context_key", "candidate_key", "attempt"),
        Index("records_in_order", "task_key", "context_key", "id"),
    )


def to_version_3(connection: Connection) -> None:
    """Give decisions and clocks tables of their own; version 2 kept them among the runs.

    Version 2 called the tuned variants contenders, and kept the seconds of a clock as a run with one round. Rows with
    other keys are real runs and stay.
    """
    decisions, clocks = _decisions_and_clocks()
    decisions.metadata.create_all(connection)
    runs = table("runs", column("id"), column("key"), column("settings"), column("created"))
    rounds = table("rounds", column("run_key"), column("data"))
    for key, settings, created in connection.execute(
        select(runs.c.key, runs.c.settings, runs.c.created).order_by(runs.c.id)
    ).all():
        if not key.startswith(("fresh-", "compiled-", "variants-")):
            continue
        if key.startswith("variants-") and key.count("-") == 1:
            for data in connection.scalars(select(rounds.c.data).where(rounds.c.run_key == key)).all():
                connection.execute(insert(clocks), {"key": key, "seconds": json.loads(data)["seconds"]})
        else:
            row = {"key": _renamed(key), "value": _decided(settings), "created": created}
            connection.execute(insert(decisions), row)
        connection.execute(delete(rounds).where(rounds.c.run_key == key))
        connection.execute(delete(runs).where(runs.c.key == key))


def _renamed(key: str) -> str:
    return f"{key.removesuffix('-contenders')}-tuned" if key.endswith("-contenders") else key


def _decided(settings: str) -> str:
    """Return the JSON text of a decision that version 2 kept as settings: the only value, or else all settings."""
    values: dict[str, Any] = json.loads(settings)
    return json.dumps(*values.values()) if len(values) == 1 else settings


def _decisions_and_clocks() -> tuple[Table, Table]:
    metadata = MetaData()
    decisions = Table(
        "decisions",
        metadata,
        Column("id", _ROW_ID, primary_key=True),
        Column("key", _KEY, nullable=False, unique=True),
        Column("value", Text, nullable=False),
        Column("created", Text, nullable=False),
    )
    clocks = Table(
        "clocks",
        metadata,
        Column("key", _KEY, primary_key=True),
        Column("seconds", Float(53), nullable=False),
    )
    return decisions, clocks


def to_version_4(connection: Connection) -> None:
    """Call a record's round what it is; version 3 called it a batch."""
    connection.exec_driver_sql("ALTER TABLE records RENAME COLUMN batch TO round")


def to_version_5(connection: Connection) -> None:
    """Add a table for the decisions about whole programs; earlier versions forgot them with the run."""
    programs = Table(
        "programs",
        MetaData(),
        Column("id", _ROW_ID, primary_key=True),
        Column("key", _KEY, nullable=False, unique=True),
        Column("context_key", _KEY, nullable=False),
        Column("tasks", Text, nullable=False),
        Column("decisions", Text, nullable=False),
        Column("ratio", Float(53), nullable=False),
        Column("created", Text, nullable=False),
    )
    programs.create(connection)


def to_version_6(connection: Connection) -> None:
    """Give records the verdict of the numeric checks; earlier versions took every timing for right.

    They timed a candidate that showed itself slow without its remaining checks, by one pair of samples, and such a time
    was at most a quarter of that which it was compared with. A timing counts as right where both is excluded.
    """
    kept = (
        "id, task_key, context_key, candidate_key, attempt, origin, median_s, ratio, failure, failure_message, timing, "
        "binary_hash, round, seed, tool, created, trace, script"
    )
    connection.exec_driver_sql("DROP INDEX records_in_order")
    connection.exec_driver_sql("ALTER TABLE records RENAME TO records_of_version_5")
    records = _records_of_version_6()
    records.create(connection)
    connection.exec_driver_sql(
        f"INSERT INTO records ({kept}, verdict) SELECT {kept}, 'not_checked' FROM records_of_version_5 ORDER BY id"
    )
    connection.exec_driver_sql("DROP TABLE records_of_version_5")
    wrong = records.c.failure == "wrong_result"
    connection.execute(update(records).where(wrong).values(verdict="wrong"))
    untuned = (records.c.origin == "untuned") & records.c.failure.is_(None)
    connection.execute(update(records).where(untuned).values(verdict="right"))
    timed = connection.execute(select(records.c.id, records.c.timing).where(records.c.ratio > 0.25)).all()
    right = [{"number": number} for number, timing in timed if json.loads(timing)["samples"] > 1]
    if right:
        connection.execute(update(records).where(records.c.id == bindparam("number")).values(verdict="right"), right)


def _records_of_version_6() -> Table:
    metadata = MetaData()
    Table("tasks", metadata, Column("key", _KEY, unique=True))
    return Table(
        "records",
        metadata,
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
