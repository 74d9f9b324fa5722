"""The tables of a store: those of this mlir-sched, or the store is refused and left as it is."""

import sqlite3
from dataclasses import make_dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, ForeignKey, Index, Integer, MetaData, String, Table, Text, UniqueConstraint
from stored_records import fill_store

from mlir_sched.database import RecordStore, schema_version
from mlir_sched.database.schema import METADATA, SCHEMA
from mlir_sched.database.schema_version import schema_digest
from mlir_sched.errors import UserError

CHANGES = {
    "older": "UPDATE mlir_sched_schema SET version = 0",
    "newer": "UPDATE mlir_sched_schema SET version = 999",
    "same version, other tables": "UPDATE mlir_sched_schema SET digest = '0123456789ab'",
    "same version, from before there were digests": "ALTER TABLE mlir_sched_schema DROP COLUMN digest",
    "later columns of the version": "ALTER TABLE mlir_sched_schema ADD COLUMN released TEXT",
}


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_store_of_another_schema_is_refused_in_one_line_and_untouched(
    path: Path, change: str, read_only: bool
) -> None:
    fill_store(path, 1)
    run_sql(path, change)
    content = path.read_bytes()
    with pytest.raises(UserError, match="has another schema") as error:
        RecordStore.open(path, read_only=read_only)
    message = str(error.value)
    assert "\n" not in message
    assert str(path) in message
    assert "move it away, or give another store" in message
    assert path.read_bytes() == content
    assert read_only or list(path.parent.iterdir()) == [path]


def test_the_message_names_both_schemas(path: Path) -> None:
    fill_store(path, 1)
    run_sql(path, CHANGES["newer"])
    digest = schema_digest(METADATA)
    both = rf"\(version 999, digest {digest}\) than this mlir-sched \(version 1, digest {digest}\)"
    with pytest.raises(UserError, match=both):
        RecordStore.open(path)


def test_an_empty_database_can_be_written_and_not_read(path: Path) -> None:
    path.touch()
    with pytest.raises(UserError, match="is empty"):
        RecordStore.open(path, read_only=True)
    RecordStore.open(path).close()
    RecordStore.open(path, read_only=True).close()


def tables(*items: Column[Any] | UniqueConstraint | Index, name: str = "things") -> MetaData:
    """Return two tables, of which one has further columns, keys or indexes."""
    metadata = MetaData()
    Table("kinds", metadata, Column("key", Text, primary_key=True))
    Table(name, metadata, Column("a", Integer, nullable=False), Column("b", Integer), *items)
    return metadata


def test_every_change_of_tables_changes_the_digest() -> None:
    others = [
        tables(),
        tables(name="objects"),
        tables(Column("c", Integer)),
        tables(Column("c", Integer, nullable=False)),
        tables(Column("c", String(9))),
        tables(Column("c", String(10))),
        tables(Column("c", Integer, primary_key=True)),
        tables(Column("c", Integer, unique=True)),
        tables(Column("c", Text, ForeignKey("kinds.key"))),
        tables(UniqueConstraint("a", "b")),
        tables(UniqueConstraint("b", "a")),
        tables(Index("order", "a", "b")),
        tables(Index("order", "a", "b", unique=True)),
    ]
    assert len({schema_digest(metadata) for metadata in others}) == len(others)


@pytest.mark.parametrize("name", ["Timing", "Dispatch", "Target"])
def test_a_change_of_what_is_kept_as_json_changes_the_digest(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    digests = {schema_digest(METADATA)}
    for inner in ("extents", "sizes"):
        part = make_dataclass("Part", [(inner, int)])
        monkeypatch.setattr(schema_version, name, make_dataclass(name, [("parts", tuple[part, ...] | None)]))  # type: ignore[valid-type]
        digests.add(schema_digest(METADATA))
    assert len(digests) == 3


def test_the_digest_is_that_of_the_tables_alone() -> None:
    assert schema_digest(tables(Column("c", Text))) == schema_digest(tables(Column("c", Text)))
    without = MetaData()
    for table in reversed(METADATA.sorted_tables):
        table.to_metadata(without)
    assert schema_digest(without) == schema_digest(METADATA)


def test_a_store_says_which_tables_it_has(path: Path) -> None:
    RecordStore.open(path).close()
    with sqlite3.connect(path) as connection:
        assert connection.execute(f"SELECT version, digest FROM {SCHEMA}").fetchall() == [(1, schema_digest(METADATA))]


def run_sql(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement)
    connection.close()
