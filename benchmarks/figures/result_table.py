"""The figures of one machine as values: tables of rows, with how they were made and what speaks against them.

A table is the answer to one question, and says its own date, versions, seeds and command. A table that is measured anew
takes the place of the one with its name, so that a page never has two answers to one question.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias, TypeVar

T = TypeVar("T")

QUESTIONS = {
    "networks": "Exported models",
    "operators": "Operators",
    "gains": "Gains over plain iree-compile",
    "devices": "Devices",
    "search": "Search and design spaces",
    "faults": "Random programs and faults",
    "tool": "The tool itself",
}
"""What tables answer, in the order of the pages."""


class Unit(StrEnum):
    """What the numbers of a column are; the pages print each in its own way."""

    SECONDS = "s"
    RATIO = "ratio"
    SHARE = "share"
    COUNT = "count"
    NUMBER = "number"
    TEXT = "text"


class Better(StrEnum):
    """On which side of 1 the ratios of a column say that mlir-sched is the faster one."""

    ABOVE = "above 1"
    BELOW = "below 1"


class Chart(StrEnum):
    """What a picture of a table shows."""

    BARS = "bars"
    """A group of bars per row, a bar per column: the shortest time of the row divided by the column's."""
    LINES = "lines"
    """A line per row, from column to column, with the spreads."""
    PANELS = "panels"
    """A panel per row with one such line."""


@dataclass(frozen=True)
class Picture:
    """How a table is drawn.

    Attributes:
        file: Name of the picture, a PNG in ``docs``.
        chart: What the picture shows.
        axis: Label of the vertical axis.
        columns: Titles of the columns that are drawn, in their order.
    """

    file: str
    chart: Chart
    axis: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Figure:
    """A number with its spread.

    Attributes:
        median: The number, in the column's unit; None where only the ends of the spread are known.
        low, high: The spread, as the table's ``spread`` says; None where it is not known.
        note: What belongs to the number, such as the framework that it is of.
        tie: Whether the two sides of a ratio are not told apart for another reason than an interval that holds 1.
    """

    median: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""
    tie: bool = False

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None) or (self.median is None and self.low is None):
            raise ValueError(f"a figure has both ends of its spread or a median alone: {self}")
        ends = [value for value in (self.low, self.median, self.high) if value is not None]
        if ends != sorted(ends):
            raise ValueError(f"the median is not inside of the spread: {self}")

    @property
    def told_apart(self) -> bool:
        """Whether a ratio differs from 1: by its whole spread, where that is known."""
        if self.low is None or self.high is None:
            return not self.tie
        return not self.tie and not self.low <= 1 <= self.high


Cell: TypeAlias = Figure | str | None
"""A figure, words, or nothing that was measured."""


@dataclass(frozen=True)
class ResultColumn:
    """A column of figures.

    Attributes:
        title: Its heading.
        unit: What its numbers are.
        better: For ratios of mlir-sched's time and another: where mlir-sched is faster. The page then says the
            geometric mean, and which rows are faster, slower and not told apart.
    """

    title: str
    unit: Unit = Unit.TEXT
    better: Better | None = None


Columns: TypeAlias = Mapping[ResultColumn, Callable[[T], Cell | float]]
"""The columns of a table, each with what it shows of what a row is made from; numbers become figures."""


@dataclass(frozen=True)
class ResultTable:
    """The answer to one question.

    Attributes:
        name: Unique in the file.
        question: One of :data:`QUESTIONS`.
        title: Heading on the page.
        date: The day by which all rows had been measured.
        command: What to run to repeat it.
        versions: Of everything that was compared.
        threads: Threads of every program; 0 where none runs on a CPU.
        seeds: Of the searches, and of the order of samples.
        interleaving: How samples of what is compared alternate.
        spread: What brackets hold.
        rows_are: Heading of the rows' names.
        columns: The columns.
        rows: Name of each row, unique in the table, with a cell per column; never empty in a file of results.
        against: What speaks against mlir-sched, and against the figures; never empty in a file of results.
        notes: What else a reader has to know.
        picture: How the table is drawn; None where it is not.
    """

    name: str
    question: str
    title: str
    date: str
    command: str
    versions: Mapping[str, str]
    threads: int
    seeds: tuple[int, ...]
    interleaving: str
    spread: str
    rows_are: str
    columns: tuple[ResultColumn, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    against: tuple[str, ...]
    notes: tuple[str, ...] = ()
    picture: Picture | None = None

    def __post_init__(self) -> None:
        datetime.date.fromisoformat(self.date)
        if self.question not in QUESTIONS:
            raise ValueError(f"{self.question!r} is not one of {', '.join(QUESTIONS)}")
        if not (self.command and self.versions and self.spread and self.interleaving):
            raise ValueError("command, versions, spread and interleaving are needed")
        unknown = set(self.picture.columns if self.picture else ()) - {column.title for column in self.columns}
        if unknown:
            raise ValueError(f"the picture has columns that the table does not have: {', '.join(sorted(unknown))}")
        names = [name for name, _ in self.rows]
        if len(set(names)) < len(names):
            raise ValueError(f"two rows have one name among {', '.join(names)}")
        for name, cells in self.rows:
            if len(cells) != len(self.columns):
                raise ValueError(f"{name}: {len(cells)} cells for {len(self.columns)} columns")
            for cell, column in zip(cells, self.columns, strict=True):
                if isinstance(cell, Figure) and column.unit is Unit.TEXT:
                    raise ValueError(f"{name}: a number under {column.title}, which has no unit")

    def column(self, title: str) -> tuple[ResultColumn, list[tuple[str, Cell]]]:
        """Return a column with the names of the rows and its cells."""
        index = [column.title for column in self.columns].index(title)
        return self.columns[index], [(name, cells[index]) for name, cells in self.rows]


@dataclass(frozen=True)
class Machine:
    """Where tables were measured.

    Attributes:
        title: As pages call it.
        processor: Its name.
        features: Those that decide which code is generated.
        cores: Cores that were used; 0 where they do not matter.
        note: What else times depend on, such as neighbours on a virtual machine.
    """

    title: str
    processor: str
    features: tuple[str, ...]
    cores: int
    note: str = ""


@dataclass(frozen=True)
class MachineResults:
    """The content of a file: a machine and its tables."""

    machine: Machine
    tables: tuple[ResultTable, ...] = field(default=())

    def table(self, name: str) -> ResultTable:
        """Return the table with a name."""
        return {table.name: table for table in self.tables}[name]

    def with_table(self, table: ResultTable) -> MachineResults:
        """Return these results with a table added, or in place of the one with its name.

        The picture stays where the new table has its columns.
        """
        known = {one.name: one for one in self.tables}
        picture = known[table.name].picture if table.name in known else None
        fits = picture is not None and {column.title for column in table.columns} >= set(picture.columns)
        known[table.name] = replace(table, picture=picture) if fits and table.picture is None else table
        return MachineResults(self.machine, tuple(known.values()))


def figure(median: float, low: float | None = None, high: float | None = None, note: str = "") -> Figure:
    """Return a figure with six significant digits, more than any measurement has."""
    low, high = (None if end is None else _rounded(end) for end in (low, high))
    return Figure(_rounded(median), low, high, note)


def cell_of(value: Cell | float) -> Cell:
    """Return a cell; whole numbers are exact, others are measured."""
    if isinstance(value, float):
        return figure(value)
    return Figure(value) if isinstance(value, int) else value


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
