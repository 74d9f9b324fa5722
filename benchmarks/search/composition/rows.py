"""The figures of a program, as data that table and JSON share."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mlir_sched.emission.acceptance import MIN_GAIN


@dataclass(frozen=True)
class Best:
    """The result of one search in one space.

    Attributes:
        seconds: Weighted sum of the dispatches' times under their best scripts; a dispatch without a script counts with
            its untuned time.
        sketches: Sketch of the best script by dispatch.
        modules: Modules that made the sketches whose speed-up over the untuned code is at least ``MIN_GAIN``.
        trials: Candidates tried.
        failed: Candidates that failed.
    """

    seconds: float
    sketches: Mapping[str, str]
    modules: tuple[str, ...]
    trials: int
    failed: int


@dataclass(frozen=True)
class Row:
    """The results of one program.

    Attributes:
        name: The program's name.
        untuned_s: Weighted sum of the untuned times of its dispatches, without dispatches that no space schedules.
        best: The results of all seeds by space, in the order in which the spaces grow.
    """

    name: str
    untuned_s: float
    best: Mapping[str, tuple[Best, ...]]

    def seconds(self, space: str) -> tuple[float, float, float]:
        """Return the seconds in a space: median, least and most of the seeds."""
        times = [best.seconds for best in self.best[space]]
        return statistics.median(times), min(times), max(times)

    def speedup(self, space: str) -> tuple[float, float, float]:
        """Return the ratio untuned time / time: median, least and most of the seeds."""
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
    """Return the factor by which the last part of a space lowers the median time; 1 for the first space."""
    spaces = list(row.best)
    position = spaces.index(space)
    return row.seconds(spaces[max(0, position - 1)])[0] / row.seconds(space)[0]


def gains_beyond_noise(row: Row, space: str) -> bool:
    """Say whether the last part of a space makes the program faster: the median's gain is at least ``MIN_GAIN``."""
    return gain_of(row, space) >= MIN_GAIN


def winning_modules(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return by module the programs on which its sketches gain: in the whole space, as the best script of some seed."""
    winners: dict[str, list[str]] = {}
    for row in rows:
        for module in sorted({m for best in list(row.best.values())[-1] for m in best.modules}):
            winners.setdefault(module, []).append(row.name)
    return winners
