"""Which tables a database has: those of this mlir-sched, none at all, or others, which are refused."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

from sqlalchemy import Connection, Engine, MetaData, Table, insert, inspect, text
from sqlalchemy.schema import ColumnCollectionConstraint

from mlir_sched.database.engine import Patience, check_integrity, enable_wal, is_file, store_name, transaction
from mlir_sched.database.schema import METADATA, SCHEMA
from mlir_sched.errors import UserError
from mlir_sched.outcome import Timing
from mlir_sched.payload import Dispatch
from mlir_sched.sampling import DISTRIBUTIONS
from mlir_sched.targets.target import Target

SCHEMA_VERSION = 1
"""Version of the tables. Until 0.1.0 is released they may change within a version; then their digest differs."""


def schema_digest(metadata: MetaData) -> str:
    """Return a digest of tables, keys and indexes, and of the fields of what is kept as JSON."""
    tables = sorted(line for table in metadata.sorted_tables for line in _lines(table))
    documents = {each for kind in (Timing, Dispatch, Target, *DISTRIBUTIONS.values()) for each in _documents(kind)}
    return hashlib.sha256("\n".join([*tables, *sorted(documents)]).encode()).hexdigest()[:12]


def _documents(kind: Any) -> Iterator[str]:
    """Yield the names of the fields of a dataclass, and of all dataclasses that its annotations name."""
    if isinstance(kind, type) and is_dataclass(kind):
        yield f"{kind.__name__} {[each.name for each in fields(kind)]}"
        for hint in get_type_hints(kind).values():
            yield from _documents(hint)
    for argument in get_args(kind):
        yield from _documents(argument)


def _lines(table: Table) -> Iterator[str]:
    for column in table.columns:
        yield f"{column} {column.type} {'NULL' if column.nullable else 'NOT NULL'}"
    for rule in table.constraints:
        if isinstance(rule, ColumnCollectionConstraint):
            targets = [key.target_fullname for key in getattr(rule, "elements", ())]
            yield f"{table} {type(rule).__name__} {[column.name for column in rule.columns]} {targets}"
    for index in table.indexes:
        yield f"{table} {'unique ' if index.unique else ''}index {[column.name for column in index.columns]}"


_OWN = {"version": SCHEMA_VERSION, "digest": schema_digest(METADATA)}


def has_tables(connection: Connection, name: str) -> bool:
    """Say whether a database is a record store of this schema; it is none yet while it has no table at all.

    Raises:
        UserError: The database is not a record store, or one of another schema.
    """
    tables = inspect(connection).get_table_names()
    if not tables:
        return False
    rows = connection.execute(text(f"SELECT * FROM {SCHEMA}")).mappings().all() if SCHEMA.name in tables else []
    if not rows:
        raise UserError(f"{name} is a database but not a record store of mlir-sched: give another file or URL")
    found = dict(rows[0])
    if found != _OWN:
        raise UserError(
            f"the record store {name} has another schema ({_text(found)}) than this mlir-sched ({_text(_OWN)}): "
            "move it away, or give another store"
        )
    return True


def make_tables(connection: Connection, name: str) -> None:
    """Make the tables inside the caller's transaction, unless the database has them; raises as :func:`has_tables`."""
    if not has_tables(connection, name):
        METADATA.create_all(connection)
        connection.execute(insert(SCHEMA).values(_OWN))


def prepare(engine: Engine, patience: Patience, *, read_only: bool) -> None:
    """Check a database, and make the tables where it has none; one that is no record store is not changed.

    Raises:
        UserError: It is damaged, or as of :func:`has_tables`; or it has no tables, and is only read.
    """
    name = store_name(engine.url)
    if is_file(engine.url):
        check_integrity(engine, patience)
    with transaction(engine, patience=patience) as connection:
        has_its_tables = has_tables(connection, name)
    if read_only:
        if not has_its_tables:
            raise UserError(f"{name} is empty: give a record store that a run has written to")
        return
    if is_file(engine.url):
        enable_wal(engine, timeout_s=patience.seconds)
    with transaction(engine, write=True, patience=patience) as connection:
        make_tables(connection, name)


def _text(schema: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {schema[name]}" for name in schema)
