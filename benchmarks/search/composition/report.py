"""The results as a table and as JSON."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import ResultColumn, ResultTable, Unit, figure
from benchmarks.search.composition.rows import Row, gain_of, gains_beyond_noise, winning_modules
from mlir_sched.text import seconds

VERSION = 1


def table_of(rows: Sequence[Row]) -> Table:
    """Return a table, a line per program and a column per space: best time, and the speed-up over the untuned code."""
    table = Table("program", "untuned")
    for space in rows[0].best:
        table.add_column(f"+ {space}", justify="right")
    for row in rows:
        table.add_row(row.name, seconds(row.untuned_s), *(_cell(row, space) for space in row.best))
    table.add_section()
    table.add_row("gain of the part", "", *(_gain(rows, space) for space in rows[0].best))
    return table


def _cell(row: Row, space: str) -> str:
    middle, low, high = row.speedup(space)
    return f"{seconds(row.seconds(space)[0])}\n{middle:.2f} ({low:.2f} to {high:.2f})"


def _gain(rows: Sequence[Row], space: str) -> str:
    """Return the part's gain over the previous space as a geometric mean, and the number of programs it speeds up."""
    if space == next(iter(rows[0].best)):
        return ""
    mean = statistics.geometric_mean(gain_of(row, space) for row in rows)
    return f"{mean:.2f}\n{sum(gains_beyond_noise(row, space) for row in rows)} of {len(rows)} faster"


def results_table(rows: Sequence[Row], threads: int, seeds: int, publishing: Publishing) -> ResultTable:
    """Return a table of results: the untuned time of every program, and its speed-up in every space."""
    first, *further = rows[0].best
    return publishing.table(
        name="composition",
        question="search",
        title="What each part of the design space is worth",
        threads=threads,
        seeds=range(seeds),
        interleaving="The best scripts of all searches in one session, in turns",
        spread="least and most of the seeds",
        rows_are="program",
        columns=[
            ResultColumn("untuned", Unit.SECONDS),
            *(ResultColumn(title, Unit.RATIO) for title in (first, *(f"+ {space}" for space in further))),
        ],
        rows=[(row.name, [figure(row.untuned_s), *(figure(*row.speedup(s)) for s in row.best)]) for row in rows],
        notes=("The untuned time over the best time as the space grows.",),
    )


def notes_of(rows: Sequence[Row], modules: Sequence[str]) -> list[str]:
    """Return the notes that a reader of the table needs, one line each.

    Args:
        rows: The results of all programs.
        modules: Names of the modules of the whole space.
    """
    winners = winning_modules(rows)
    notes = ["times are medians over the seeds, in brackets least and most; ratios are untuned time / time"]
    used = {name: winners[name] for name in modules if name in winners}
    notes += [f"{name} has a part in what gains on {', '.join(programs)}" for name, programs in used.items()]
    losers = [name for name in modules if name not in used]
    if losers:
        notes.append(f"in no best script that gains: {', '.join(losers)}")
    tried = sum(best.trials for row in rows for cell in row.best.values() for best in cell)
    failed = sum(best.failed for row in rows for cell in row.best.values() for best in cell)
    return [*notes, f"{tried} candidates tried, {failed} failed"]


def write_json(path: Path, rows: Sequence[Row], setting: Mapping[str, Any]) -> None:
    """Write all results, with the setting of the run."""
    data = {"version": VERSION, "setting": dict(setting), "rows": [row.to_json() for row in rows]}
    path.write_text(json.dumps(data, indent=1))


def read_json(path: Path, setting: Mapping[str, Any]) -> list[Row]:
    """Return the rows that an earlier run with the same setting wrote; none if there are no such rows."""
    if not path.exists():
        return []
    data = json.loads(path.read_text())
    if data["version"] != VERSION or data["setting"] != dict(setting):
        return []
    return [Row.from_json(row) for row in data["rows"]]
