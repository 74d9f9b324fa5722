"""The comparison of operators as a table of results: whole calls, with the ratios of kernel times beside them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.report import labels_of
from benchmarks.figures.result_table import Better, Cell, Figure, ResultColumn, ResultTable, Unit, figure
from benchmarks.figures.rows import CALLS, Column, Row, View
from benchmarks.operators.comparison import Setting
from benchmarks.peers import make_peer


def results_table(rows: Sequence[Row], setting: Setting, publishing: Publishing) -> ResultTable:
    """Return the table of some operators.

    Args:
        rows: The operators.
        setting: How they were compared.
        publishing: Where the table goes.
    """
    labels, threads = labels_of(rows), setting.target.cores
    tuned = sorted({label for row in rows for label in row.tuning})
    pins = [pin for peer in setting.peers for pin in make_peer.REQUIREMENTS[peer.name]]
    seeds = "least and most of the sessions" if len(setting.seeds) > 1 else "95 % interval of timing"
    return publishing.table(
        name=f"operators-{threads}-threads-{setting.trials}-trials",
        question="operators",
        title=f"Operators, {setting.trials} trials, {threads} thread{'' if threads == 1 else 's'}",
        requirements=pins,
        threads=threads,
        seeds=setting.seeds,
        interleaving="All frameworks in turns, on the same pinned cores, the others stopped meanwhile",
        spread=f"{seeds}; ~ marks times whose ranges overlap",
        rows_are="operator",
        columns=(
            *(ResultColumn(label, Unit.SECONDS) for label in labels),
            ResultColumn("best other over mlir-sched", Unit.RATIO, Better.ABOVE),
            ResultColumn("as kernel time", Unit.RATIO),
            ResultColumn("of roofline", Unit.SHARE),
            *(ResultColumn(f"tuning, {label}", Unit.SECONDS) for label in tuned),
        ),
        rows=tuple((row.name, _cells(row, labels, tuned)) for row in rows),
        notes=tuple(dict.fromkeys(f"{row.name}: {note}" for row in rows for note in row.notes)),
    )


def _cells(row: Row, labels: Sequence[str], tuned: Sequence[str]) -> tuple[Cell, ...]:
    share = row.of_roofline(CALLS)
    return (
        *(_time(row.calls.columns.get(label)) for label in labels),
        _ratio(row.calls, labels),
        _ratio(row.kernels, labels),
        None if share is None else figure(share),
        *(_seconds(row, label) for label in tuned),
    )


def _time(column: Column | None) -> Cell:
    return None if column is None else figure(column.time_s, *column.range_s, note=", ".join(column.details))


def _ratio(view: View, labels: Sequence[str]) -> Cell:
    against = view.against(labels)
    if against is None:
        return None
    ends = sorted((against.low, against.ratio, against.high))  # the ratio of the medians may lie outside the sessions'
    return Figure(against.ratio, ends[0], ends[-1], against.label, against.one_day)


def _seconds(row: Row, label: str) -> Cell:
    return figure(median(tuning.seconds for tuning in row.tuning[label])) if label in row.tuning else None
