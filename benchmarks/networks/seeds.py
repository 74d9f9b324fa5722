"""Joins results of several seeds: ``python -m benchmarks networks.seeds RESULT.json ...``.

Every file is what ``python -m benchmarks networks --json`` wrote for one seed, all of them with the same minutes and
threads on this machine. The table goes to the terminal as Markdown.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures.markdown import markdown_table
from benchmarks.figures.publishing import add_arguments, publishing_of
from benchmarks.networks.comparison import Result
from benchmarks.networks.joined import Joined, join, labels_of
from benchmarks.networks.results import results_table
from benchmarks.operators.programs import TUNED
from mlir_sched.targets import detect_target


def markdown(rows: Sequence[Joined]) -> str:
    """Return a table, a row per network: milliseconds per call, with least and largest of the seeds' medians."""
    labels = labels_of(rows)
    header = ["network", "seeds", *labels, f"{TUNED} over the fastest engine", "trials", "minutes"]
    lines = []
    for row in rows:
        times = [_milliseconds(row.medians(label)) if label in row.seconds else "-" for label in labels]
        middle, low, high = row.over_best
        best = ", ".join(sorted({result.best for result in row.results}))
        trials = [result.tuning.trials for result in row.results]
        minutes = [result.tuning.seconds / 60 for result in row.results]
        ratio = f"{middle:.2f} ({low:.2f} to {high:.2f}) {best}"
        lines.append([row.network, str(len(row.results)), *times, ratio, _range(trials, "d"), _range(minutes, ".1f")])
    return markdown_table(header, lines)


def _milliseconds(seconds: Sequence[float]) -> str:
    low, middle, high = (f"{1e3 * value:.3g}" for value in (min(seconds), statistics.median(seconds), max(seconds)))
    return middle if len(seconds) == 1 else f"{middle} ({low} to {high})"


def _range(values: Sequence[float], form: str) -> str:
    low, high = (format(value, form) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks networks.seeds", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="a file per seed")
    add_arguments(parser)
    arguments = parser.parse_args()
    publishing = publishing_of(parser, arguments)
    rows = join([Result.from_json(data) for path in arguments.files for data in json.loads(path.read_text())])
    print(markdown(rows))
    if publishing:
        publishing.add(results_table(rows, publishing), detect_target("llvm-cpu", rows[0].results[0].threads))


if __name__ == "__main__":
    main()
