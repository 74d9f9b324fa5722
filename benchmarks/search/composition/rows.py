"""The figures of programs in growing spaces: as data, as a table of results, and what follows from them."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Columns, Figure, ResultColumn, ResultTable, Unit, figure
from benchmarks.kept import Kept
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


KEPT = Kept("rows", list[Row], 1)


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


def results_table(rows: Sequence[Row], threads: int, seeds: int, publishing: Publishing) -> ResultTable:
    """Return a table of results: the untuned time of every program, and its speed-up in every space."""
    first, *further = rows[0].best
    titles = {first: first, **{space: f"+ {space}" for space in further}}
    columns: Columns[Row] = {
        ResultColumn("untuned", Unit.SECONDS): lambda row: row.untuned_s,
        **{ResultColumn(title, Unit.RATIO): partial(_speedup, space) for space, title in titles.items()},
    }
    return publishing.table(
        name="composition",
        question="search",
        title="What each part of the design space is worth",
        threads=threads,
        seeds=range(seeds),
        interleaving="The best scripts of all searches in one session, in turns",
        spread="least and most of the seeds",
        rows_are="program",
        columns=columns,
        rows=[(row.name, row) for row in rows],
        notes=("The untuned time over the best time as the space grows.",),
    )


def _speedup(space: str, row: Row) -> Figure:
    return figure(*row.speedup(space))


def notes_of(rows: Sequence[Row], modules: Sequence[str]) -> list[str]:
    """Return the notes that a reader of the table needs, one line each."""
    winners = winning_modules(rows)
    notes = [f"gain of {space}: {_gain(rows, space)}" for space in list(rows[0].best)[1:]]
    used = {name: winners[name] for name in modules if name in winners}
    notes += [f"{name} has a part in what gains on {', '.join(programs)}" for name, programs in used.items()]
    losers = [name for name in modules if name not in used]
    if losers:
        notes.append(f"in no best script that gains: {', '.join(losers)}")
    tried = sum(best.trials for row in rows for cell in row.best.values() for best in cell)
    failed = sum(best.failed for row in rows for cell in row.best.values() for best in cell)
    return [*notes, f"{tried} candidates tried, {failed} failed"]


def _gain(rows: Sequence[Row], space: str) -> str:
    """Return the part's gain over the previous space as a geometric mean, and the number of programs it speeds up."""
    mean = statistics.geometric_mean(gain_of(row, space) for row in rows)
    return f"{mean:.2f}, {sum(gains_beyond_noise(row, space) for row in rows)} of {len(rows)} faster"
