"""Joins results of several seeds: ``python -m benchmarks networks.seeds RESULT.json ... [--chart FILE]``.

Every file is what ``python -m benchmarks networks --json`` wrote for one seed, all of them with the same minutes and
threads on the same machine. The table goes to the terminal as Markdown.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures.charts import write_relative_speeds
from benchmarks.networks.comparison import Result
from benchmarks.operators.programs import TUNED


@dataclass(frozen=True)
class Joined:
    """The results of one network under several seeds.

    Attributes:
        network: Its name.
        results: The results, one per seed.
    """

    network: str
    results: tuple[Result, ...]

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds per call by column: medians of the seeds' medians."""
        return {label: statistics.median(self.medians(label)) for label in self.results[0].seconds}

    def medians(self, label: str) -> list[float]:
        """Return the median seconds per call of a column, one per seed; a column is in the results of all seeds."""
        return [result.seconds[label].median for result in self.results]

    @property
    def over_best(self) -> tuple[float, float, float]:
        """Time of mlir-sched over that of the fastest engine: (median of the seeds, least and largest of any seed)."""
        ratios = [result.over_best for result in self.results]
        middle = statistics.median(ratio.median for ratio in ratios)
        return middle, min(ratio.low for ratio in ratios), max(ratio.high for ratio in ratios)


def join(results: Sequence[Result]) -> list[Joined]:
    """Return the networks in the order of their first results."""
    networks = dict.fromkeys(result.network for result in results)
    return [Joined(name, tuple(result for result in results if result.network == name)) for name in networks]


def labels_of(rows: Sequence[Joined]) -> list[str]:
    """Return the columns of all rows: mlir-sched, then the engines from the fastest to the slowest of the first row."""
    first = sorted(rows[0].seconds, key=rows[0].seconds.__getitem__)
    return list(dict.fromkeys([TUNED, *first, *(label for row in rows for label in row.seconds)]))


def markdown(rows: Sequence[Joined]) -> str:
    """Return a table, a row per network: milliseconds per call, with least and largest of the seeds' medians."""
    labels = labels_of(rows)
    header = ["network", "seeds", *labels, f"{TUNED} over the fastest engine", "trials", "minutes"]
    lines = [header, ["---"] * len(header)]
    for row in rows:
        times = [_milliseconds(row.medians(label)) if label in row.seconds else "-" for label in labels]
        middle, low, high = row.over_best
        best = ", ".join(sorted({result.best for result in row.results}))
        trials = [result.tuning.trials for result in row.results]
        minutes = [result.tuning.seconds / 60 for result in row.results]
        ratio = f"{middle:.2f} ({low:.2f} to {high:.2f}) {best}"
        lines.append([row.network, str(len(row.results)), *times, ratio, _range(trials, "d"), _range(minutes, ".1f")])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _milliseconds(seconds: Sequence[float]) -> str:
    low, middle, high = (f"{1e3 * value:.3g}" for value in (min(seconds), statistics.median(seconds), max(seconds)))
    return middle if len(seconds) == 1 else f"{middle} ({low} to {high})"


def _range(values: Sequence[float], form: str) -> str:
    low, high = (format(value, form) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks networks.seeds", description=__doc__)
    parser.add_argument("results", nargs="+", type=Path, help="a file per seed")
    parser.add_argument("--chart", type=Path, help="write a chart of speeds relative to the fastest")
    arguments = parser.parse_args()
    rows = join([Result.from_json(data) for path in arguments.results for data in json.loads(path.read_text())])
    print(markdown(rows))
    if arguments.chart:
        write_relative_speeds(arguments.chart, {row.network: row.seconds for row in rows}, labels_of(rows))


if __name__ == "__main__":
    main()
