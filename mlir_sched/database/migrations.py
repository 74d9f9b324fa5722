"""Steps from one schema version to the next; each knows the tables as they were then, not as they are now."""

from __future__ import annotations

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
)

_KEY = String(255)
_ROW_ID = BigInteger().with_variant(Integer(), "sqlite")


def to_version_2(connection: Connection) -> None:
    """Give records a number of attempts, and drop what was the same for all records of a task: compiler and flags.

    SQLite cannot change the columns that are unique together, so the table is made anew. What version 1 kept stays,
    under its old keys: nothing that is asked for by keys with a processor and a script's digest finds it.
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
