"""Results of several seeds, a row per network."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

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
