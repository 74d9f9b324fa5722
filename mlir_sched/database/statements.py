"""Statements on the database of a record store, on any that SQLAlchemy knows, in transactions that wait for others."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Executable, RowMapping, Table, delete, insert, select
from sqlalchemy.exc import IntegrityError

from mlir_sched.database.engine import Patience, transaction
from mlir_sched.database.schema import Row

_RACES = 3
"""How often an insertion is tried again when another process inserts the same key at the same moment."""
_CHUNK = 500
"""Maximum number of keys in one query; databases limit the parameters of a statement."""
T = TypeVar("T")


class Statements:
    """Runs statements, each call in a transaction of its own.

    Attributes:
        patience: How long to wait for the lock of another process.
    """

    def __init__(self, engine: Engine, patience: Patience) -> None:
        self.engine = engine
        self.patience = patience

    def reading(self) -> AbstractContextManager[Connection]:
        """Return a transaction that reads."""
        return transaction(self.engine, patience=self.patience)

    def writing(self) -> AbstractContextManager[Connection]:
        """Return a transaction that writes."""
        return transaction(self.engine, write=True, patience=self.patience)

    def rows(self, query: Executable) -> Sequence[RowMapping]:
        """Return the rows that a query finds."""
        with self.reading() as connection:
            return connection.execute(query).mappings().all()

    def values(self, query: Executable) -> tuple[Any, ...]:
        """Return the first column of the rows that a query finds."""
        with self.reading() as connection:
            return tuple(connection.scalars(query))

    def value(self, query: Executable) -> Any:
        """Return the first column of the first row that a query finds; None without a row."""
        with self.reading() as connection:
            return connection.scalar(query)

    def insert(self, table: Table, row: Row) -> None:
        """Insert a row."""
        with self.writing() as connection:
            connection.execute(insert(table), row)

    def insert_missing(self, table: Table, keys: Sequence[str], rows: Sequence[Row]) -> list[int]:
        """Insert the rows whose key columns are not in the table yet; return their positions, ascending.

        Of several given rows with the same key the first is inserted.
        """
        return self.in_turn(lambda connection: insert_missing_rows(connection, table, keys, rows))

    def replace(self, table: Table, keys: Sequence[str], row: Row) -> None:
        """Insert a row; it replaces a row with the same key columns."""
        with self.writing() as connection:
            replace_row(connection, table, keys, row)

    def in_turn(self, write: Callable[[Connection], T]) -> T:
        """Return the result of a writing transaction, run anew when another process inserted the same key."""
        for _ in range(_RACES):
            with suppress(IntegrityError), self.writing() as connection:
                return write(connection)
        with self.writing() as connection:
            return write(connection)


def replace_row(connection: Connection, table: Table, keys: Sequence[str], row: Row) -> None:
    """Insert a row in a transaction; it replaces a row with the same key columns."""
    connection.execute(delete(table).where(*(table.c[key] == row[key] for key in keys)))
    connection.execute(insert(table), row)


def insert_missing_rows(connection: Connection, table: Table, keys: Sequence[str], rows: Sequence[Row]) -> list[int]:
    """Do :meth:`Statements.insert_missing` in a transaction.

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
