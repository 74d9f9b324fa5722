"""The figures of an operator, as data that table, JSON and chart share."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mlir_sched.emission.decisions import MIN_GAIN


@dataclass(frozen=True)
class Best:
    """What one search found in one space.

    Attributes:
        seconds: Weighted sum of the dispatches' times under their best scripts, untuned where there is none.
        sketches: Sketch of the best script by dispatch.
        modules: Modules that made the sketches that gain at least ``MIN_GAIN`` over the untuned code.
        trials: Candidates tried.
        failed: Those that failed.
    """

    seconds: float
    sketches: Mapping[str, str]
    modules: tuple[str, ...]
    trials: int
    failed: int


@dataclass(frozen=True)
class Row:
    """One program.

    Attributes:
        name: Its name.
        untuned_s: Weighted sum of the untuned times of its dispatches, those that no space schedules left out.
        best: By space, in the order they grow, what was found with every seed.
    """

    name: str
    untuned_s: float
    best: Mapping[str, tuple[Best, ...]]

    def seconds(self, space: str) -> tuple[float, float, float]:
        """Return median, least and most of the seeds."""
        times = [best.seconds for best in self.best[space]]
        return statistics.median(times), min(times), max(times)

    def speedup(self, space: str) -> tuple[float, float, float]:
        """Return untuned time / time: median, least and most of the seeds."""
        middle, low, high = self.seconds(space)
        return self.untuned_s / middle, self.untuned_s / high, self.untuned_s / low

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Row:
        best = {
            space: tuple(Best(**found | {"modules": tuple(found["modules"])}) for found in seeds)
            for space, seeds in data["best"].items()
        }
        return Row(data["name"], data["untuned_s"], best)


def gain_of(row: Row, space: str) -> float:
    """Return how many times faster the median got with the last part of a space; 1 for the first space."""
    spaces = list(row.best)
    position = spaces.index(space)
    return row.seconds(spaces[max(0, position - 1)])[0] / row.seconds(space)[0]


def gains_beyond_noise(row: Row, space: str) -> bool:
    """Say whether the last part of a space makes the program faster: the median gains what is worth a script."""
    return gain_of(row, space) >= MIN_GAIN


def winning_modules(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return by module the programs where a sketch of it gains: the best of the whole space with some seed."""
    winners: dict[str, list[str]] = {}
    for row in rows:
        for module in sorted({m for best in list(row.best.values())[-1] for m in best.modules}):
            winners.setdefault(module, []).append(row.name)
    return winners
