"""The results on a terminal and in files: JSON, Markdown, and the paper's bar chart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from benchmarks.operators.report import Grid, grids_of, labels_of, lines_of
from benchmarks.operators.rows import Row

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


def write_chart(path: Path, rows: Sequence[Row]) -> None:
    """Write a chart of whole calls: speed of every column relative to the fastest of its operator, as in the paper."""
    labels = labels_of(rows)
    figure = Figure(figsize=(max(6.0, 1.2 * len(rows)), 4), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    width = 0.85 / max(1, len(labels))
    for index, label in enumerate(labels):
        places = [i + (index - (len(labels) - 1) / 2) * width for i in range(len(rows))]
        axes.bar(places, [relative_speed(row, label) for row in rows], width, label=label)
    axes.set_xticks(range(len(rows)), [row.name for row in rows])
    axes.set_ylabel("speed of a call relative to the fastest")
    axes.legend(fontsize="small", ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.2))
    figure.savefig(path)


def relative_speed(row: Row, label: str) -> float:
    """Return the call time of a row's fastest column divided by that of a column; 0 when the column is missing."""
    columns = row.calls.columns
    return min(column.time_s for column in columns.values()) / columns[label].time_s if label in columns else 0.0


def _markdown(grid: Grid) -> str:
    lines = [grid.header, ("---",) * len(grid.header), *grid.cells]
    return f"### {grid.title.capitalize()}\n\n" + "\n".join(
        f"| {' | '.join(cell.replace(chr(10), ', ') for cell in cells)} |" for cells in lines
    )
