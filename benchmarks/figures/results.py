"""The results on a terminal and in files: JSON and Markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.figures.markdown import markdown_table
from benchmarks.figures.report import Grid, grids_of, lines_of
from benchmarks.figures.rows import Row

VERSION = 3


def print_results(console: Console, rows: Sequence[Row]) -> None:
    """Print the tables and the lines under them."""
    for grid in grids_of(rows):
        table = Table(title=grid.title)
        for index, title in enumerate(grid.header):
            table.add_column(title, justify="right" if index else "left")
        for cells in grid.cells:
            table.add_row(*cells)
        console.print(table)
    for line in lines_of(rows):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def write_markdown(path: Path, rows: Sequence[Row]) -> None:
    """Write the tables and the lines under them as Markdown."""
    tables = [_markdown(grid) for grid in grids_of(rows)]
    notes = "\n".join(f"- {line}" for line in lines_of(rows))
    path.write_text("\n\n".join([*tables, notes]) + "\n")


def write_json(path: Path, rows: Sequence[Row], setting: Mapping[str, Any]) -> None:
    """Write all results, with the setting of the run."""
    data = {
        "version": VERSION,
        "setting": dict(setting),
        "rows": [row.to_json() for row in rows],
    }
    path.write_text(json.dumps(data, indent=1))


def _markdown(grid: Grid) -> str:
    return f"### {grid.title.capitalize()}\n\n{markdown_table(grid.header, grid.cells)}"
