"""The pictures of a run as PNGs: the speed-up of its dispatches against trials, the program's time against minutes."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlir_sched.tuned_folder.drawing_library import default_style, new_figure
from mlir_sched.tuned_folder.result import CurvePoint, TuneResult

CURVES_SHOWN = 10
"""Most dispatches in the picture, which shows those that gained most."""
TALLEST = 3.0
"""Height of the picture of the program, in times of the slower of its two measured times; slower variants lie above."""


@dataclass(frozen=True)
class Curve:
    """The tuning curve of one dispatch.

    Attributes:
        ratios: Speed-up of every candidate in the order tried; None for one that failed.
    """

    name: str
    ratios: tuple[float | None, ...]

    @property
    def best(self) -> np.ndarray:
        """Best speed-up after each candidate, 1 before any is faster than the untuned code."""
        known = np.array([1.0 if ratio is None else ratio for ratio in (1.0, *self.ratios)])
        return np.maximum.accumulate(known)


@default_style
def draw_dispatches(curves: Sequence[Curve]) -> bytes:
    """Return a PNG: best speed-up so far against trials, one line per dispatch, a dot per valid candidate."""
    figure, axes = _figure()
    shown = sorted((c for c in curves if c.ratios), key=lambda curve: -float(curve.best[-1]))[:CURVES_SHOWN]
    for curve in shown:
        (line,) = axes.step(range(len(curve.best)), curve.best, where="post", label=_short(curve.name))
        valid = [(i + 1, ratio) for i, ratio in enumerate(curve.ratios) if ratio is not None]
        axes.plot(*zip(*valid, strict=True), ".", color=line.get_color(), alpha=0.4) if valid else None
    axes.axhline(1.0, color="gray", linewidth=0.8, linestyle="--")
    axes.set_xlabel("trials")
    axes.set_ylabel("speed-up against the untuned dispatch")
    if shown:
        axes.legend(fontsize="small")
    return _png(figure)


@default_style
def draw_program(result: TuneResult) -> bytes:
    """Return a PNG: the estimated time of every program that was tuned against minutes, and the times at the end.

    The line of the program that the search ended with goes on, dotted, to the end of the run, where the emitted program
    was measured.
    """
    figure, axes = _figure()
    untuned, tuned, end_min = result.program.untuned, result.program.tuned, result.run_seconds / 60
    main, others = result.curves[0], result.curves[1:]
    for number, curve in enumerate(others):
        label = None if number else f"{len(others)} other variant{'s' * (len(others) > 1)}, estimated"
        axes.step(*_points(curve.estimates), where="post", color="gray", linewidth=0.8, label=label)
    minutes, times_ms = _points(main.estimates)
    (line,) = axes.step(minutes, times_ms, where="post", label=f"variant {_short(main.variant)}, estimated")
    axes.plot(minutes, times_ms, ".", color=line.get_color())
    axes.plot([minutes[-1], end_min], [times_ms[-1]] * 2, ":", color=line.get_color())
    axes.axhline(1e3 * untuned.median_s, color="gray", linewidth=0.8, linestyle="--")
    how = "measured" if result.measured else "estimated"
    names = f"{result.program.reference}, {how}", f"emitted, {how}"
    for timing, style, label in ((untuned, "ks", names[0]), (tuned, "C2D", names[1])):
        axes.plot([end_min], [1e3 * timing.median_s], style, label=label, clip_on=False, zorder=3)
    slower_s = max(untuned.median_s, tuned.median_s)
    highest_s = max(slower_s, *(estimate.program_s for curve in result.curves for estimate in curve.estimates))
    axes.set_ylim(0, 1e3 * min(1.1 * highest_s, TALLEST * slower_s))
    axes.set_xlim(0, end_min * 1.02)
    axes.set_xlabel("minutes of the run")
    axes.set_ylabel("ms per run of the program")
    axes.legend(fontsize="small")
    return _png(figure)


def _points(estimates: Sequence[CurvePoint]) -> tuple[list[float], list[float]]:
    """Return the minutes and the milliseconds of estimates."""
    return [estimate.run_s / 60 for estimate in estimates], [1e3 * estimate.program_s for estimate in estimates]


def _figure() -> tuple[Any, Any]:
    """Return an empty figure, which can be read on a phone, and its axes."""
    figure = new_figure(width_in=6.4, height_in=4, dpi=150)
    return figure, figure.add_subplot()


def _png(figure: Any) -> bytes:
    output = io.BytesIO()
    figure.savefig(output, format="png")
    return output.getvalue()


def _short(name: str) -> str:
    return name if len(name) <= 48 else name[:47] + "…"
