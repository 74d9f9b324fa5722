"""How right other pools are on what a pool reaches, before any of its candidates is known (``Reach``)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Columns, Figure, ResultColumn, ResultTable, Unit, figure
from benchmarks.strategies.pools import Pool, Sources, sources_of
from mlir_sched.search import Reach

ALL = "all"


@dataclass(frozen=True)
class Believed:
    """What was believed of a pool.

    Attributes:
        pool, family: The pool's task, and its family.
        believed, found: Time of the best candidate over that of the untuned code, as others make believe and as it is.
        held: Whether that is in the 80 % interval of the belief.
    """

    pool: str
    family: str
    believed: float
    found: float
    held: bool

    @property
    def factor(self) -> float:
        """By which factor the belief is wrong, at least 1."""
        return max(self.believed, self.found) / min(self.believed, self.found)


def beliefs(pools: Sequence[Pool]) -> list[Believed]:
    """Return what other shapes make believe of every pool of which two or more on its machine show something."""
    found = list[Believed]()
    for pool in pools:
        others = [each.shown for each in sources_of(pool, Sources.BOTH, pools)]
        alike = [each for each in others if each.demand.family == pool.shown.demand.family]
        belief = Reach.of(pool.shown.demand, pool.shown.untuned_s, alike)
        if belief is not None:
            ends = math.exp(belief.mean), math.exp(pool.shown.log_ratio)
            found.append(Believed(pool.task.name, pool.family, *ends, belief.holds(pool.shown)))
    return found


def results_table(found: Sequence[Believed], publishing: Publishing) -> ResultTable:
    """Return a table with a row per family, and one of all."""
    columns: Columns[Sequence[Believed]] = {
        ResultColumn("pools", Unit.COUNT): len,
        ResultColumn("believed", Unit.RATIO): _mean_of(lambda each: each.believed),
        ResultColumn("found", Unit.RATIO): _mean_of(lambda each: each.found),
        ResultColumn("wrong by", Unit.RATIO): _mean_of(lambda each: each.factor),
        ResultColumn("intervals hold", Unit.SHARE): lambda group: fmean(each.held for each in group),
    }
    families = dict.fromkeys(each.family for each in found)
    by_family = [(family, [each for each in found if each.family == family]) for family in families]
    return publishing.table(
        name="strategies-ranking-reach",
        question="search",
        title="What a dispatch reaches, as others make believe before its first candidate",
        threads=1,
        seeds=(),
        interleaving="Nothing is timed: measured candidates are compared",
        spread="least and largest of the pools",
        rows_are="family",
        columns=columns,
        rows=[*by_family, (ALL, found)],
        notes=(
            "Time of the best candidate over the untuned code's, geometric means: as the best operations and bytes "
            "per second of other shapes of the same op make believe, and as found in the pool. Wrong by: the "
            "larger of the two over the smaller. Intervals hold: how often what was found is in the belief's 80 %.",
        ),
    )


def _mean_of(value: Callable[[Believed], float]) -> Callable[[Sequence[Believed]], Figure]:
    def mean(group: Sequence[Believed]) -> Figure:
        logs = [math.log(value(each)) for each in group]
        ends = (math.exp(min(logs)), math.exp(max(logs))) if len(logs) > 1 else ()
        return figure(math.exp(fmean(logs)), *ends)

    return mean
