"""The paper's bar chart: the speed of every framework relative to the fastest, per program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def write_relative_speeds(path: Path, seconds: Mapping[str, Mapping[str, float]], labels: Sequence[str]) -> None:
    """Write the chart: a group of bars per program, a bar per framework.

    Args:
        path: File of the picture.
        seconds: Time of a call by framework, by program; a framework that has no time for a program has no bar there.
        labels: The frameworks, in the order of the bars.
    """
    figure = Figure(figsize=(max(6.0, 1.2 * len(seconds)), 4), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    width = 0.85 / max(1, len(labels))
    for index, label in enumerate(labels):
        places = [i + (index - (len(labels) - 1) / 2) * width for i in range(len(seconds))]
        axes.bar(places, [relative_speed(times, label) for times in seconds.values()], width, label=label)
    axes.set_xticks(range(len(seconds)), list(seconds))
    axes.set_ylabel("speed of a call relative to the fastest")
    axes.legend(fontsize="small", ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.2))
    figure.savefig(path)


def relative_speed(seconds: Mapping[str, float], label: str) -> float:
    """Return the shortest of some times divided by the one under a label; 0 where there is none."""
    return min(seconds.values()) / seconds[label] if label in seconds else 0.0
