"""Files of results, ``docs/results/<machine>.json``: read, checked and written, a table after the other."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures.result_table import (
    Better,
    Cell,
    Chart,
    Figure,
    Machine,
    MachineResults,
    Picture,
    ResultColumn,
    ResultTable,
    Unit,
)


class ResultFileError(Exception):
    """A file of results breaks the schema; the message says which file, which table and what is wrong."""


def load_results(path: Path) -> MachineResults:
    """Return the content of a file of results.

    Raises:
        ResultFileError: The file is not one, or breaks the schema.
    """
    where = path.name
    try:
        data = json.loads(path.read_text())
        machine = Machine(**{**data["machine"], "features": tuple(data["machine"]["features"])})
        tables = []
        for one in data["tables"]:
            where = f"{path.name}, {one.get('name', 'a table without a name')}"
            tables.append(_complete(_table_of(one)))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ResultFileError(f"{where}: {error}") from error
    names = [table.name for table in tables]
    if len(set(names)) < len(names):
        raise ResultFileError(f"{path.name}: two tables have one name among {', '.join(names)}")
    return MachineResults(machine, tuple(tables))


def dump_results(results: MachineResults) -> str:
    """Return the text of a file of results: a line per row, so that changes can be read."""
    machine = json.dumps(vars(results.machine), ensure_ascii=False)
    tables = ",\n".join(_table_text(table) for table in results.tables)
    return f'{{\n "machine": {machine},\n "tables": [\n{tables}\n ]\n}}\n'


def add_table(path: Path, machine: Machine, table: ResultTable) -> None:
    """Add a table to a file of results, or put it in the place of the one with its name.

    Args:
        machine: The machine of a file that is made; one that exists keeps its own.

    Raises:
        ResultFileError: The file breaks the schema; it is not changed.
        ValueError: The table has no rows, or does not say what speaks against us.
    """
    known = load_results(path) if path.exists() else MachineResults(machine)
    path.write_text(dump_results(known.with_table(_complete(table))))


def _complete(table: ResultTable) -> ResultTable:
    if not (table.rows and table.against):
        raise ValueError("rows and what speaks against us are needed")
    return table


def _table_of(data: Mapping[str, Any]) -> ResultTable:
    columns = tuple(_column_of(column) for column in data["columns"])
    rows = tuple((str(name), tuple(map(_cell_of, cells))) for name, *cells in data["rows"])
    lists = {name: tuple(data.get(name, ())) for name in ("seeds", "against", "notes")}
    picture = _picture_of(data["picture"]) if "picture" in data else None
    return ResultTable(**{**data, **lists, "columns": columns, "rows": rows, "picture": picture})


def _picture_of(data: Mapping[str, Any]) -> Picture:
    return Picture(data["file"], Chart(data["chart"]), data["axis"], tuple(data["columns"]))


def _column_of(data: Mapping[str, str]) -> ResultColumn:
    better = Better(data["better"]) if "better" in data else None
    return ResultColumn(data["title"], Unit(data.get("unit", Unit.TEXT)), better)


def _cell_of(data: Any) -> Cell:
    if isinstance(data, Mapping):
        return Figure(**{"median": None, **data})
    if data is None or isinstance(data, str):
        return data
    if isinstance(data, Sequence):
        return Figure(*data)
    return Figure(data)


def _cell_data(cell: Cell) -> Any:
    """Return a cell in its shortest form: words, a number, [median, low, high], or the figure's fields."""
    if not isinstance(cell, Figure):
        return cell
    if cell.note or cell.tie or cell.median is None:
        return {name: value for name, value in vars(cell).items() if value not in (None, "", False)}
    return cell.median if cell.low is None else [cell.median, cell.low, cell.high]


def _column_data(column: ResultColumn) -> dict[str, str]:
    further = {"better": column.better} if column.better else {}
    return {"title": column.title, **({} if column.unit is Unit.TEXT else {"unit": column.unit}), **further}


def _table_text(table: ResultTable) -> str:
    plain = {n: v for n, v in vars(table).items() if n not in ("rows", "columns", "picture") and v not in ((), "")}
    if table.picture:
        plain["picture"] = vars(table.picture)
    plain["columns"] = [_column_data(column) for column in table.columns]
    head = ",\n".join(f"   {json.dumps(name)}: {_lines(value)}" for name, value in plain.items())
    rows = ",\n".join(f"    {_json([name, *map(_cell_data, cells)])}" for name, cells in table.rows)
    return f'  {{\n{head},\n   "rows": [\n{rows}\n   ]\n  }}'


def _lines(value: Any) -> str:
    """Return a value on one line; a list of texts or of objects has a line for each."""
    if isinstance(value, tuple | list) and value and not isinstance(value[0], int):
        return "[\n" + ",\n".join(f"    {_json(one)}" for one in value) + "\n   ]"
    return _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
