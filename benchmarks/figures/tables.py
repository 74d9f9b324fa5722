"""Tables of results as Markdown and on a terminal, and what follows from their ratios."""

from collections.abc import Iterable, Iterator, Sequence
from statistics import geometric_mean

from benchmarks.figures.result_table import Better, Cell, Figure, ResultColumn, ResultTable, Unit
from mlir_sched.text import console, say
from mlir_sched.text import table as empty_table

NOTHING = "-"
TIE = "~"
"""Marks a ratio whose two sides are not told apart."""


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown, without a line break at its end; lines within a cell are joined by commas."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace(chr(10), ', ') for cell in line)} |" for line in lines)


def in_a_cell(text: str) -> str:
    """Return text for a cell of a table: a bar would end the cell."""
    return " ".join(text.split()).replace("|", "\\|")


def print_table(table: ResultTable) -> None:
    """Print a table of results, and what belongs to it."""
    shown = empty_table(table.rows_are, *(_heading(column) for column in table.columns), title=table.title)
    for name, cells in table.rows:
        shown.add_row(name, *(cell_text(cell, column.unit) for cell, column in zip(cells, table.columns, strict=True)))
    console().print(shown)
    say(*table.notes)


def _heading(column: ResultColumn) -> str:
    """Return a heading as :func:`mlir_sched.text.table` takes it: numbers are aligned to the right."""
    return column.title if column.unit is Unit.TEXT else f">{column.title}"


def result_table(table: ResultTable, rows: Sequence[str] = (), columns: Sequence[str] = ()) -> str:
    """Return a table of results, or the named rows and columns of it.

    Raises:
        KeyError: The table has no row of a name.
        ValueError: The table has no column of a title.
    """
    shown = [table.column(title) for title in columns or [column.title for column in table.columns]]
    cells = {name: [dict(found)[name] for _, found in shown] for name, _ in table.rows}
    units = [column.unit for column, _ in shown]
    return markdown_table(
        [table.rows_are, *(column.title for column, _ in shown)],
        ([name, *map(cell_text, cells[name], units)] for name in rows or list(cells)),
    )


def cell_text(cell: Cell, unit: Unit) -> str:
    """Return a cell as text: ``1.23 ms (1.20 to 1.31)``, with what belongs to the number."""
    if not isinstance(cell, Figure):
        return cell or NOTHING
    tie = f" {TIE}" if cell.tie else ""
    return f"{_with_spread(cell, unit)}{tie}{', ' if cell.note else ''}{cell.note}"


def _with_spread(figure: Figure, unit: Unit) -> str:
    """Return a median with the ends of its spread; a unit of time that all have is said once."""
    median = None if figure.median is None else _number(figure.median, unit)
    if figure.low is None or figure.high is None:
        return median or NOTHING
    low, high = _number(figure.low, unit), _number(figure.high, unit)
    if unit is Unit.SECONDS:
        low = low.removesuffix(_unit_of(high))
    if median is None:
        return f"{low} to {high}"
    if unit is Unit.SECONDS and _unit_of(low) == "" and _unit_of(median) == _unit_of(high):
        high = high.removesuffix(_unit_of(high))
    return f"{median} ({low} to {high})"


def _unit_of(text: str) -> str:
    _, space, unit = text.partition(" ")
    return space + unit


def _number(value: float, unit: Unit) -> str:
    if unit is Unit.SECONDS:
        return _seconds(value)
    if unit is Unit.RATIO:
        return f"{value:.2f}" if value < 10 else _three_digits(value)
    if unit is Unit.SHARE:
        return f"{100 * value:.3g} %"
    if unit is Unit.COUNT:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if value * scale >= 1:
            return f"{_three_digits(value * scale)} {unit}"
    return f"{_three_digits(value * 1e9)} ns"


def _three_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:#.3g}".rstrip(".")


def conclusions(table: ResultTable) -> Iterator[str]:
    """Yield what follows from the ratios of a table: their mean, and the rows on either side of 1."""
    for title in [column.title for column in table.columns if column.better]:
        column, cells = table.column(title)
        figures = [(name, cell) for name, cell in cells if isinstance(cell, Figure) and cell.median is not None]
        yield from _of_ratios(column, figures)


def _of_ratios(column: ResultColumn, figures: Sequence[tuple[str, Figure]]) -> Iterator[str]:
    ratios = [figure.median for _, figure in figures if figure.median is not None]
    if len(ratios) > 1:
        yield f"Geometric mean of *{column.title}*: {geometric_mean(ratios):.2f}, over {len(ratios)} rows."
    sides: dict[str, list[str]] = {"Slower": [], "Faster": [], "Not told apart": []}
    for name, figure in figures:
        above = figure.median is not None and figure.median > 1
        side = "Faster" if above == (column.better is Better.ABOVE) else "Slower"
        sides[side if figure.told_apart and figure.median != 1 else "Not told apart"].append(name)
    yield " ".join(f"**{side}**: {'; '.join(names)}." for side, names in sides.items() if names)
