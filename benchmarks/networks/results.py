"""The comparison of networks as a table of results."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Better, Cell, Figure, ResultColumn, ResultTable, Unit, figure
from benchmarks.networks.joined import Joined, labels_of
from benchmarks.peers import make_engines


def results_table(rows: Sequence[Joined], publishing: Publishing) -> ResultTable:
    """Return the table of some networks, all of them compared with as many minutes and threads.

    Args:
        rows: The networks.
        publishing: Where the table goes.
    """
    first, labels = rows[0].results[0], labels_of(rows)
    return publishing.table(
        name=f"networks-{first.threads}-threads-{first.minutes:g}-minutes",
        question="networks",
        title=f"Networks, {first.minutes:g} minutes of tuning, {_threads(first.threads)}",
        requirements=make_engines.REQUIREMENTS,
        threads=first.threads,
        seeds=tuple(sorted({result.seed for row in rows for result in row.results})),
        interleaving="All engines in turns, on the same pinned cores",
        spread="least and largest of the seeds' medians, for one seed the 95 % interval of timing; "
        "of a ratio, the ends of the widest interval of any seed",
        rows_are="model",
        columns=(
            ResultColumn("runs", Unit.COUNT),
            *(ResultColumn(label, Unit.SECONDS) for label in labels),
            ResultColumn("over the fastest", Unit.RATIO, Better.BELOW),
            ResultColumn("trials", Unit.COUNT),
            ResultColumn("minutes", Unit.NUMBER),
        ),
        rows=tuple((row.network, _cells(row, labels)) for row in rows),
    )


def _cells(row: Joined, labels: Sequence[str]) -> tuple[Cell, ...]:
    best = ", ".join(sorted({result.best for result in row.results}))
    return (
        Figure(len(row.results)),
        *(_time(row, label) if label in row.seconds else None for label in labels),
        figure(*row.over_best, note=best),
        _of_seeds([result.tuning.trials for result in row.results]),
        _of_seeds([result.tuning.seconds / 60 for result in row.results]),
    )


def _time(row: Joined, label: str) -> Figure:
    if len(row.results) > 1:
        return _of_seeds(row.medians(label))
    interval = row.results[0].seconds[label]
    return figure(interval.median, interval.low, interval.high)


def _of_seeds(values: Sequence[float]) -> Figure:
    """Return the median with least and largest; of one seed the value alone."""
    return figure(statistics.median(values), *((min(values), max(values)) if len(values) > 1 else ()))


def _threads(number: int) -> str:
    return f"{number} thread{'' if number == 1 else 's'}"
