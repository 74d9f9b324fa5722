"""Pictures of tables of results: the same table gives the same picture, which says what it was made from."""

import hashlib
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.figures.result_table import Chart, Figure, ResultTable
from mlir_sched.tuned_folder.drawing_library import default_style, new_figure

DIGEST = "Made from"
"""Name of the text in a PNG that holds the digest of what is drawn."""
PANELS_PER_LINE = 4
Point: TypeAlias = tuple[float, float, float]
"""A figure with the ends of its spread, which are the figure itself where there is no spread."""


@dataclass(frozen=True)
class Drawing:
    """What a picture shows.

    Attributes:
        chart: How.
        axis: Label of the vertical axis.
        columns: Titles of the columns.
        rows: By name, a point per column; None where the table has no figure.
    """

    chart: Chart
    axis: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[Point | None, ...]]

    @property
    def digest(self) -> str:
        """Digest of what is drawn."""
        return hashlib.sha256(json.dumps(vars(self)).encode()).hexdigest()


def drawing_of(table: ResultTable) -> Drawing:
    """Return what the picture of a table shows.

    Raises:
        ValueError: The table has no picture.
    """
    if table.picture is None:
        raise ValueError(f"{table.name} has no picture")
    titles = table.picture.columns
    by_column = [dict(table.column(title)[1]) for title in titles]
    rows = {name: tuple(_point(cells[name]) for cells in by_column) for name, _ in table.rows}
    plain = tuple(title.replace("`", "") for title in titles)
    return Drawing(table.picture.chart, table.picture.axis, plain, rows)


def _point(cell: Any) -> Point | None:
    if not isinstance(cell, Figure) or cell.median is None:
        return None
    if cell.low is None or cell.high is None:
        return cell.median, cell.median, cell.median
    return cell.median, cell.low, cell.high


def digest_in(path: Path) -> str | None:
    """Return the digest of what a PNG was made from; None where there is no such file, or the file does not say."""
    from PIL import Image

    if not path.exists():
        return None
    with Image.open(path) as image:
        return image.info.get(DIGEST)


@default_style
def png_of(drawing: Drawing) -> bytes:
    """Return the picture as a PNG."""
    figure = {Chart.BARS: _bars, Chart.LINES: _lines, Chart.PANELS: _panels}[drawing.chart](drawing)
    output = io.BytesIO()
    figure.savefig(output, format="png", metadata={DIGEST: drawing.digest, "Software": None})
    return output.getvalue()


def _bars(drawing: Drawing) -> Any:
    figure = new_figure(width_in=max(6.0, 1.2 * len(drawing.rows)), height_in=4, dpi=120)
    axes = figure.add_subplot()
    width = 0.85 / len(drawing.columns)
    speeds = [relative_speeds(points) for points in drawing.rows.values()]
    for index, label in enumerate(drawing.columns):
        places = [row + (index - (len(drawing.columns) - 1) / 2) * width for row in range(len(speeds))]
        axes.bar(places, [of_row[index] for of_row in speeds], width, label=label)
    axes.set_xticks(range(len(speeds)), list(drawing.rows))
    axes.set_ylabel(drawing.axis)
    axes.legend(fontsize="small", ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.2))
    return figure


def relative_speeds(points: Sequence[Point | None]) -> list[float]:
    """Return the shortest of some times divided by each of them; 0 where there is none."""
    shortest = min((point[0] for point in points if point), default=0.0)
    return [shortest / point[0] if point else 0.0 for point in points]


def _lines(drawing: Drawing) -> Any:
    figure = new_figure(width_in=6.4, height_in=4, dpi=120)
    axes = figure.add_subplot()
    for name, points in drawing.rows.items():
        _line(axes, points, label=name)
    axes.set_xticks(range(len(drawing.columns)), drawing.columns)
    axes.set_ylabel(drawing.axis)
    axes.legend(fontsize="small")
    return figure


def _panels(drawing: Drawing) -> Any:
    columns = min(len(drawing.rows), PANELS_PER_LINE)
    lines = math.ceil(len(drawing.rows) / columns)
    figure = new_figure(width_in=2.6 * columns, height_in=2.8 * lines, dpi=100)
    panels = figure.subplots(lines, columns, squeeze=False).flatten()
    for axes in panels[len(drawing.rows) :]:
        axes.set_visible(False)
    for axes, (name, points) in zip(panels, drawing.rows.items(), strict=False):
        _line(axes, points)
        axes.axhline(1.0, color="gray", linewidth=0.6)
        axes.set_title(name, fontsize="small")
        axes.set_xlim(-0.5, len(points) - 0.5)
        axes.set_xticks(range(len(points)), drawing.columns, rotation=60, ha="right", fontsize=6)
        axes.set_ylim(bottom=0.0)
    figure.supylabel(drawing.axis, fontsize="small")
    return figure


def _line(axes: Any, points: Sequence[Point | None], label: str | None = None) -> None:
    places = [place for place, point in enumerate(points) if point]
    found = [point for point in points if point]
    spreads = ([middle - low for middle, low, _ in found], [high - middle for middle, _, high in found])
    middles = [middle for middle, _, _ in found]
    axes.errorbar(places, middles, yerr=spreads, marker="o", markersize=3, capsize=2, label=label)
