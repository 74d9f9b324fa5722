"""The results as a table, as JSON, and as the paper's bar chart."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.table import Table

from benchmarks.operators.programs import TUNED
from benchmarks.operators.roofline import Roofline
from benchmarks.operators.rows import Column, Row
from mlir_sched.runner.statistics import Interval

ORDER = ("IREE default", "IREE O3", "IREE data-tiling", "IREE fused-padding", "TVM MetaSchedule", "torch", TUNED)
VERSION = 1


def labels_of(rows: Sequence[Row]) -> list[str]:
    """Return the columns that some row has, in the order of the table."""
    present = {label for row in rows for label in row.columns}
    return [*(label for label in ORDER if label in present), *sorted(present - set(ORDER))]


def table_of(rows: Sequence[Row]) -> Table:
    """Return the results as a table; its notes are printed by :func:`notes_of`."""
    labels = labels_of(rows)
    table = Table("operator", "roofline")
    for label in labels:
        table.add_column(label, justify="right")
    for title in ("against best peer (95 %)", "of roofline", "trials, seconds"):
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(
            row.name + (" *" if row.kernel_time else ""),
            f"{duration(row.floor_s)} {row.bound}",
            *(_time(row.columns.get(label)) for label in labels),
            _against_best(row),
            "" if row.of_roofline is None else f"{row.of_roofline:.0%}",
            "\n".join(f"{label}: {t.trials}, {t.seconds:.0f} s" for label, t in row.tuning.items()),
        )
    return table


def notes_of(rows: Sequence[Row], roofline: Roofline) -> list[str]:
    """Return what a reader of the table has to know, one line each."""
    levels = ", ".join(f"{level.name} {level.bytes_per_s / 1e9:.0f} GB/s" for level in roofline.levels)
    notes = [
        f"cores {', '.join(map(str, roofline.cores))}; measured: {roofline.flops_per_s / 1e9:.1f} GFLOP/s, {levels}",
        "times are medians, ± is half the width of the 95 % interval; a ratio above 1: mlir-sched is faster",
    ]
    if any(row.kernel_time for row in rows):
        notes.append("* kernel time: the framework's empty call is taken off")
    peers = sorted({peer for row in rows for peer in row.overhead_s})
    for peer in peers:
        overheads = [row.overhead_s[peer] for row in rows if peer in row.overhead_s]
        notes.append(f"empty call of {peer}: {duration(min(overheads))} to {duration(max(overheads))}")
    by_note: dict[str, list[str]] = {}
    for row in rows:
        for note in row.notes:
            by_note.setdefault(note, []).append(row.name)
    notes += [f"{note} ({', '.join(names)})" if len(names) < len(rows) else note for note, names in by_note.items()]
    return notes


def means_of(rows: Sequence[Row]) -> list[str]:
    """Return mlir-sched's time relative to others' over the rows that have both, and its tuning time to theirs."""
    lines = []
    others = [label for label in labels_of(rows) if label != TUNED]
    ways_of_iree = [label for label in others if label.startswith("IREE")]
    groups = {"the best other": others, "the best of IREE": ways_of_iree, **{label: [label] for label in others}}
    for name, labels in groups.items():
        found = [against for row in rows if (against := _against_fastest(row, labels)) is not None]
        if found:
            faster = sum(against.low > 1 for against in found)
            mean = 1 / geometric_mean([against.median for against in found])
            rows_of_both = f"rows: {len(found)}, faster on {faster}"
            lines.append(f"time relative to {name}: {mean:.2f} (geometric mean; {rows_of_both})")
    for label in sorted({label for row in rows for label in row.tuning} - {TUNED}):
        both = [row.tuning for row in rows if label in row.tuning and TUNED in row.tuning]
        if both:
            mean = geometric_mean([tuning[TUNED].seconds / tuning[label].seconds for tuning in both])
            lines.append(f"tuning time relative to {label}: {mean:.2f} (geometric mean; rows: {len(both)})")
    return lines


def write_json(path: Path, rows: Sequence[Row], roofline: Roofline, setting: Mapping[str, Any]) -> None:
    """Write everything that was found."""
    data = {
        "version": VERSION,
        "setting": dict(setting),
        "roofline": roofline.to_json(),
        "rows": [row.to_json() for row in rows],
    }
    path.write_text(json.dumps(data, indent=1))


def write_chart(path: Path, rows: Sequence[Row]) -> None:
    """Write a chart: speed of every column relative to the fastest of its operator, as the paper's figure has it."""
    labels = labels_of(rows)
    figure = Figure(figsize=(max(6.0, 1.2 * len(rows)), 4), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    width = 0.85 / max(1, len(labels))
    for index, label in enumerate(labels):
        places = [i + (index - (len(labels) - 1) / 2) * width for i in range(len(rows))]
        axes.bar(places, [relative_speed(row, label) for row in rows], width, label=label)
    axes.set_xticks(range(len(rows)), [row.name for row in rows])
    axes.set_ylabel("speed relative to the fastest")
    axes.legend(fontsize="small", ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.2))
    figure.savefig(path)


def relative_speed(row: Row, label: str) -> float:
    """Return the fastest time of a row over that of a column, 0 when it is missing."""
    if label not in row.columns:
        return 0.0
    return min(column.time.median for column in row.columns.values()) / row.columns[label].time.median


def duration(seconds: float) -> str:
    """Return seconds with three digits and a unit that suits them."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _time(column: Column | None) -> str:
    if column is None:
        return "-"
    return f"{duration(column.time.median)} ±{column.spread / 2:.1%}" + (f"\n{column.detail}" if column.detail else "")


def _against_best(row: Row) -> str:
    against = _against_fastest(row, row.columns)
    return "-" if against is None else f"{against}\n{row.best_peer}"


def _against_fastest(row: Row, labels: Iterable[str]) -> Interval | None:
    """Return the ratio of the fastest of these columns' time to mlir-sched's; None where one is missing."""
    others = [row.columns[label] for label in labels if label != TUNED and label in row.columns]
    fastest = min(others, key=lambda column: column.time.median, default=None)
    return None if fastest is None else fastest.ratio
