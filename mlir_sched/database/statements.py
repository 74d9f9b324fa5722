"""Statements that mean the same on every database SQLAlchemy knows."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from sqlalchemy import Connection, Table, delete, insert, select

Row: TypeAlias = Mapping[str, Any]
"""Column values by name."""

_CHUNK = 500
"""Maximum number of keys in one query; databases limit the parameters of a statement."""


def insert_missing(connection: Connection, table: Table, keys: Sequence[str], rows: Sequence[Row]) -> list[int]:
    """Insert the rows whose key columns are not in the table yet, and return their positions, ascending.

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
