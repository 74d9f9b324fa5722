"""Results of networks under one or several seeds, a row per network, as a table of results."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Better, Columns, Figure, ResultColumn, ResultTable, Unit, figure
from benchmarks.networks.comparison import Result
from benchmarks.operators.programs import TUNED
from benchmarks.peers import make_engines
from benchmarks.peers.tuning import Tuning
from mlir_sched.text import threads


@dataclass(frozen=True)
class Joined:
    """The results of one network, one per seed."""

    network: str
    results: tuple[Result, ...]

    @property
    def labels(self) -> list[str]:
        """The columns, which the results of all seeds have, from the fastest to the slowest."""
        return sorted(self.results[0].seconds, key=lambda label: median(self.medians(label)))

    def medians(self, label: str) -> list[float]:
        """Return the median seconds per call of a column, one per seed."""
        return [result.seconds[label].median for result in self.results]

    @property
    def over_best(self) -> tuple[float, float, float]:
        """Time of mlir-sched over that of the fastest engine: (median of the seeds, least and largest of any seed)."""
        ratios = [result.over_best for result in self.results]
        middle = median(ratio.median for ratio in ratios)
        return middle, min(ratio.low for ratio in ratios), max(ratio.high for ratio in ratios)


def join(results: Sequence[Result]) -> list[Joined]:
    """Return the networks in the order of their first results."""
    networks = dict.fromkeys(result.network for result in results)
    return [Joined(name, tuple(result for result in results if result.network == name)) for name in networks]


def results_table(rows: Sequence[Joined], publishing: Publishing) -> ResultTable:
    """Return the table of some networks, all of them compared with as many minutes and threads.

    Columns are mlir-sched, then the engines from the fastest to the slowest of the first row.
    """
    first = rows[0].results[0]
    labels = dict.fromkeys([TUNED, *(label for row in rows for label in row.labels)])
    columns: Columns[Joined] = {
        ResultColumn("runs", Unit.COUNT): lambda row: len(row.results),
        **{ResultColumn(label, Unit.SECONDS): partial(_time, label) for label in labels},
        ResultColumn("over the fastest", Unit.RATIO, Better.BELOW): lambda row: figure(
            *row.over_best, note=", ".join(sorted({result.best for result in row.results}))
        ),
        ResultColumn("trials", Unit.COUNT): lambda row: _of_seeds([result.tuning.trials for result in row.results]),
        ResultColumn("minutes", Unit.NUMBER): lambda row: _of_seeds([r.tuning.seconds / 60 for r in row.results]),
    }
    return publishing.table(
        name=f"networks-{first.threads}-threads-{first.minutes:g}-minutes",
        question="networks",
        title=f"Networks, {first.minutes:g} minutes of tuning, {threads(first.threads)}",
        requirements=make_engines.REQUIREMENTS,
        threads=first.threads,
        seeds=tuple(sorted({result.seed for row in rows for result in row.results})),
        interleaving="All engines in turns, on the same pinned cores",
        spread="least and largest of the seeds' medians, for one seed the 95 % interval of timing; "
        "of a ratio, the ends of the widest interval of any seed",
        rows_are="model",
        columns=columns,
        rows=[(row.network, row) for row in rows],
    )


def others_took(rows: Sequence[Joined]) -> list[str]:
    """Return a line per network with what others took to be tuned or compiled; of several seeds the last."""
    found = {row.network: row.results[-1].others for row in rows}
    return [f"{name}: {', '.join(map(_cost, others, others.values()))}" for name, others in found.items() if others]


def _cost(label: str, tuning: Tuning) -> str:
    trials = f"{tuning.trials} trials, " if tuning.trials else ""
    return f"{label}: {trials}{tuning.seconds / 60:.1f} min"


def _time(label: str, row: Joined) -> Figure | None:
    if label not in row.results[0].seconds:
        return None
    if len(row.results) > 1:
        return _of_seeds(row.medians(label))
    interval = row.results[0].seconds[label]
    return figure(interval.median, interval.low, interval.high)


def _of_seeds(values: Sequence[float]) -> Figure:
    """Return the median with least and largest; of one seed the value alone."""
    return figure(median(values), *((min(values), max(values)) if len(values) > 1 else ()))
