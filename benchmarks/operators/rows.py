"""What was found for an operator, as data that table, JSON and chart share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.operators.programs import TUNED
from benchmarks.operators.sampling import Samples, ratio
from benchmarks.operators.tuning import Tuning
from mlir_sched.runner.statistics import Interval

SHORT_S = 50e-6
"""Rows whose fastest call is shorter compare kernel time: the call without the framework's empty call."""


@dataclass(frozen=True)
class Column:
    """One framework's, or one variant's, fastest way.

    Attributes:
        detail: Which way it is.
        time: Seconds per call with the 95 % interval, the empty call's time taken off in rows of kernel time.
        ratio: This column's time divided by mlir-sched's; None when that is missing.
        disturbed: Samples during which the cores were shared.
    """

    detail: str
    time: Interval
    ratio: Interval | None
    disturbed: int

    @property
    def spread(self) -> float:
        """Width of the interval relative to the median."""
        return self.time.relative_width()


@dataclass(frozen=True)
class Row:
    """One operator.

    Attributes:
        name: The operator.
        columns: By label; what is missing has a note.
        kernel_time: Whether the empty call's time is taken off.
        overhead_s: Seconds of an empty call by peer.
        floor_s: Least seconds by the measured roofline.
        bound: What bounds it: FMA or a level of the memory.
        flops, moved_bytes: What the roofline is reckoned from.
        tuning: Trials and seconds by label.
        notes: What is missing and why, by label or file.
        samples: Every sample that was taken, the empty calls' too.
    """

    name: str
    columns: Mapping[str, Column]
    kernel_time: bool
    overhead_s: Mapping[str, float]
    floor_s: float
    bound: str
    flops: int
    moved_bytes: int
    tuning: Mapping[str, Tuning]
    notes: tuple[str, ...]
    samples: tuple[Samples, ...]

    @property
    def best_peer(self) -> str | None:
        """The fastest of all columns but mlir-sched's."""
        others = [label for label in self.columns if label != TUNED]
        return min(others, key=lambda label: self.columns[label].time.median, default=None)

    @property
    def of_roofline(self) -> float | None:
        """Share of the roofline that mlir-sched reaches, or without it the fastest column; 1 is the ceiling."""
        label = TUNED if TUNED in self.columns else self.best_peer
        return None if label is None else self.floor_s / self.columns[label].time.median

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"best_peer": self.best_peer, "of_roofline": self.of_roofline}


def columns_of(samples: tuple[Samples, ...], overhead: Mapping[str, Samples]) -> tuple[dict[str, Column], bool]:
    """Return the fastest way of every label, and whether the times are kernel times."""
    kernel_time = min((s.interval.median for s in samples), default=0.0) < SHORT_S
    if kernel_time:
        samples = tuple(s.less(overhead[s.contender.peer].interval.median) for s in samples)
    fastest: dict[str, Samples] = {}
    for one in samples:
        known = fastest.get(one.contender.label)
        if known is None or one.interval.median < known.interval.median:
            fastest[one.contender.label] = one
    own = fastest.get(TUNED)
    columns = {
        label: Column(s.contender.detail, s.interval, None if own is None else ratio(s, own), s.quiet.count(False))
        for label, s in fastest.items()
    }
    return columns, kernel_time
