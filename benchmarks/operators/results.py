"""The comparison of operators as tables: a view of all times each, and whole calls as a table of results."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.report import labels_of, lines_of, views_of
from benchmarks.figures.result_table import Better, Cell, Columns, Figure, ResultColumn, ResultTable, Unit, figure
from benchmarks.figures.rows import CALLS, Row, View
from benchmarks.figures.tables import print_table, result_table
from benchmarks.operators.comparison import Setting
from benchmarks.peers import make_peer
from mlir_sched import text


def print_results(rows: Sequence[Row], setting: Setting, publishing: Publishing) -> None:
    """Print a table per view, that of tuning, and the lines under them."""
    for table in view_tables(rows, setting, publishing):
        print_table(table)
    text.say(*lines_of(rows))


def write_markdown(path: Path, rows: Sequence[Row], setting: Setting, publishing: Publishing) -> None:
    """Write what :func:`print_results` prints as Markdown."""
    tables = [f"### {one.title}\n\n{result_table(one)}" for one in view_tables(rows, setting, publishing)]
    notes = "\n".join(f"- {line}" for line in lines_of(rows))
    path.write_text("\n\n".join([*tables, notes]) + "\n")


def view_tables(rows: Sequence[Row], setting: Setting, publishing: Publishing) -> Iterator[ResultTable]:
    """Yield a table for each view of the times, and one of tuning: trials and seconds of every session."""
    for name in views_of(rows):
        columns: Columns[Row] = {
            ResultColumn("roofline", Unit.SECONDS): lambda row: figure(row.floor_s, note=row.bound),
            **_times(rows, name),
            ResultColumn("of roofline", Unit.SHARE): partial(_share, name),
        }
        of_view = [row for row in rows if name in row.views]
        yield _table(name.capitalize(), name, columns, of_view, setting, publishing)
    tuning: Columns[Row] = {ResultColumn(label): partial(_trials, label) for label in _tuned(rows)}
    yield _table("Tuning", "tuning", tuning, rows, setting, publishing)


def results_table(rows: Sequence[Row], setting: Setting, publishing: Publishing) -> ResultTable:
    """Return whole calls as a table of results, with the ratios of kernel times beside them."""
    labels, cores = labels_of(rows), setting.target.cores
    columns: Columns[Row] = {
        **_times(rows, CALLS),
        ResultColumn("as kernel time", Unit.RATIO): lambda row: _ratio(row.kernels, labels),
        ResultColumn("of roofline", Unit.SHARE): lambda row: row.of_roofline(CALLS),
        **{ResultColumn(f"tuning, {label}", Unit.SECONDS): partial(_seconds, label) for label in _tuned(rows)},
    }
    title = f"Operators, {setting.trials} trials, {text.threads(cores)}"
    name = f"operators-{cores}-threads-{setting.trials}-trials"
    notes = dict.fromkeys(f"{row.name}: {note}" for row in rows for note in row.notes)
    return _table(title, name, columns, rows, setting, publishing, tuple(notes))


def _table(
    title: str,
    name: str,
    columns: Columns[Row],
    rows: Sequence[Row],
    setting: Setting,
    publishing: Publishing,
    notes: Sequence[str] = (),
) -> ResultTable:
    seeds = "least and most of the sessions" if len(setting.seeds) > 1 else "95 % interval of timing"
    return publishing.table(
        name=name,
        question="operators",
        title=title,
        requirements=[pin for peer in setting.peers for pin in make_peer.REQUIREMENTS[peer.name]],
        threads=setting.target.cores,
        seeds=setting.seeds,
        interleaving="All frameworks in turns, on the same pinned cores, the others stopped meanwhile",
        spread=f"{seeds}; ~ marks times whose ranges overlap",
        rows_are="operator",
        columns=columns,
        rows=[(row.name, row) for row in rows],
        notes=notes,
    )


def _times(rows: Sequence[Row], name: str) -> Columns[Row]:
    """Return the columns of a view: the times, and the ratio of the best other one to mlir-sched's."""
    labels, best = labels_of(rows), ResultColumn("best other over mlir-sched", Unit.RATIO, Better.ABOVE)
    times = {ResultColumn(label, Unit.SECONDS): partial(_time, name, label) for label in labels}
    return {**times, best: lambda row: _ratio(row.views[name], labels)}


def _time(name: str, label: str, row: Row) -> Cell:
    view = row.views[name]
    if label in view.unresolved:
        return "not resolved"
    column = view.columns.get(label)
    return None if column is None else figure(column.time_s, *column.range_s, note=", ".join(column.details))


def _share(name: str, row: Row) -> Cell:
    share = row.of_roofline(name)
    return None if share is None else figure(share, note="!" if share > 1 else "")


def _tuned(rows: Sequence[Row]) -> list[str]:
    return sorted({label for row in rows for label in row.tuning})


def _seconds(label: str, row: Row) -> float | None:
    return median(run.seconds for run in row.tuning[label]) if label in row.tuning else None


def _trials(label: str, row: Row) -> str:
    counts = ((f"{run.trials} in " if run.trials else "", run.seconds) for run in row.tuning.get(label, ()))
    return ", ".join(f"{trials}{seconds:.0f} s" for trials, seconds in counts)


def _ratio(view: View, labels: Sequence[str]) -> Cell:
    against = view.against(labels)
    if against is None:
        return None
    ends = sorted((against.low, against.ratio, against.high))  # the ratio of the medians may lie outside the sessions'
    return Figure(against.ratio, ends[0], ends[-1], against.label, against.one_day)
