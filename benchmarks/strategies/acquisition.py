"""What the spread of predictions is worth: searches that score candidates in several ways, and what models learn from.

Two tables. Searches: parts of design spaces that were measured whole are searched with the same seeds, and the trials
until the best is near are compared with today's; a search that does not come near counts as twice its trials. Of every
round it is counted how many candidates lay in the 80 % intervals that the model gave before. Selections: a model
learns from a part of the candidates of other shapes, chosen by what another model says of them (``selection.py``).

Nothing is compiled or timed. What was searched is kept, and the same command goes on where it was stopped.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Columns, Figure, ResultColumn, ResultTable, Unit, figure
from benchmarks.kept import Kept
from benchmarks.search.measured_space import MeasuredSpace
from benchmarks.search.search_quality import INTERLEAVING, SearchRun, course, measured_space
from benchmarks.strategies.arms import ACTIVE
from benchmarks.strategies.pools import Pool
from benchmarks.strategies.verdict import Compared, Judgement, Pair, Verdict, against_trials, compared
from benchmarks.strategies.watched import Watched
from mlir_sched.corpus.files import read_task
from mlir_sched.models import QuantileModel, SharedCostModel, XGBoostModel
from mlir_sched.models.cost_model import CostModelFactory
from mlir_sched.search import Acquisition, EvolutionaryOptions, EvolutionarySearch
from mlir_sched.text import say

COVERED = (0.75, 0.85)
"""Which share of the candidates of a next round 80 % intervals have to hold."""


@dataclass(frozen=True)
class Way:
    """A way to choose candidates.

    Attributes:
        what: What it is, for the page.
        options: Of the search.
        model: Makes its cost model.
    """

    what: str
    options: EvolutionaryOptions = field(default_factory=EvolutionaryOptions)
    model: CostModelFactory = XGBoostModel


_PING_PONG = EvolutionaryOptions(acquisition=Acquisition.PING_PONG)
TODAY = "ucb"
"""The way that others are compared with."""
WAYS: Mapping[str, Way] = {
    TODAY: Way("mean plus half the spread: the default"),
    "mean": Way("mean alone: exploration 0", EvolutionaryOptions(acquisition=Acquisition.MEAN)),
    "ucb 1": Way("mean plus spread", EvolutionaryOptions(exploration=1.0)),
    "ucb 2": Way("mean plus twice the spread", EvolutionaryOptions(exploration=2.0)),
    "ping_pong": Way("spread after a round that was ranked badly, else mean", _PING_PONG),
    "quantile": Way("median plus half the spread of a model of quantiles", model=QuantileModel),
    "quantile ping_pong": Way("the same turns with a model of quantiles", _PING_PONG, QuantileModel),
}
"""The ways by name."""


@dataclass(frozen=True)
class Search:
    """A search of a table.

    Attributes:
        table, family: The table, and the family of its task.
        way: Name of the way.
        trials: Until the best is near that of the table; twice the trials of a search for never.
        judged, inside: As of :class:`~benchmarks.strategies.watched.Watched`.
    """

    table: str
    family: str
    way: str
    seed: int
    trials: float
    judged: int
    inside: int


@dataclass(frozen=True)
class Setting:
    """How tables are searched.

    Attributes:
        within: How near to the best of the table counts as found.
    """

    seeds: int
    trials: int
    round_size: int
    within: float

    def searched(self, space: MeasuredSpace, family: str, way: str, seed: int) -> Search:
        """Return what a search of a table found."""
        model = Watched(WAYS[way].model())
        rng = np.random.default_rng(seed)
        strategy = EvolutionarySearch(space, rng, SharedCostModel(model), WAYS[way].options)
        best_s = course(space, strategy, trials=self.trials, round_size=self.round_size)
        needed = SearchRun(space.name, way, seed, best_s, space.best_s).trials_to_reach(self.within)
        return Search(space.name, family, way, seed, min(needed, 2.0 * self.trials), model.judged, model.inside)


KEPT = Kept("searches", list[Search], 1)


def searches(tables: Iterable[Path], ways: Sequence[str], setting: Setting, keep: Path) -> Iterator[Search]:
    """Yield the searches of every table in every way with every seed; those of a table and a way are kept together.

    Raises:
        UserError: A table cannot be read, or holds a sample of a design space.
    """
    for path in tables:
        space, family = measured_space(path), Pool(read_task(path)).family
        for way in ways:
            known = f"{setting} {WAYS[way].options.key()}"
            file, asked = keep / f"{space.name} {way}.json".replace(" ", "-"), {"searched": known}
            if (found := KEPT.read(file, asked)) is None:
                found = [setting.searched(space, family, way, seed) for seed in range(setting.seeds)]
                KEPT.write(file, found, asked)
            median = float(np.median([each.trials for each in found]))
            say(f"{space.name}, {way}: {_shown(median, setting.trials)} trials")
            yield from found


def against_today(found: Sequence[Search], way: str) -> Compared:
    """Return the trials of a way over those of :data:`TODAY`."""
    trials = {(each.table, each.seed): each.trials for each in found if each.way == TODAY}
    own = [each for each in found if each.way == way]
    return compared(
        [Pair(each.table, each.family, each.seed, each.trials / trials[each.table, each.seed]) for each in own]
    )


def judgement(found: Sequence[Search], way: str) -> Judgement:
    """Return what becomes of a way: searches of tables alone make no default, but they can rule one out."""
    against = [*against_trials(against_today(found, way), ACTIVE)]
    return Judgement(Verdict.OPTION, tuple(against) or ("it is not searched live yet",))


def coverage(found: Sequence[Search], way: str) -> Figure | None:
    """Return the share of the candidates of next rounds in the intervals of a way, with the ends over tables."""
    judged, inside = Counter[str](), Counter[str]()
    for each in found:
        if each.way == way and each.judged:
            judged[each.table] += each.judged
            inside[each.table] += each.inside
    shares = [inside[table] / count for table, count in judged.items()]
    return figure(float(np.mean(shares)), min(shares), max(shares)) if shares else None


def results_table(found: Sequence[Search], setting: Setting, publishing: Publishing) -> ResultTable:
    """Return a table with a row per way, :data:`TODAY` first."""
    ways, tables = (list(dict.fromkeys(each)) for each in ((s.way for s in found), (s.table for s in found)))
    others = [way for way in ways if way != TODAY]
    columns: Columns[str] = {
        **{ResultColumn(f"trials on {table}"): partial(_trials, found, table, setting.trials) for table in tables},
        ResultColumn(f"over {TODAY}", Unit.RATIO): partial(_unless_today, partial(_over, found)),
        ResultColumn("intervals hold", Unit.SHARE): partial(coverage, found),
        ResultColumn("verdict"): partial(_unless_today, lambda way: judgement(found, way).verdict),
    }
    return publishing.table(
        name="strategies-acquisition-searches",
        question="search",
        features=True,
        title=f"Trials until a candidate within {100 * setting.within:.3g} % of the best, by what candidates are "
        "scored with",
        threads=1,
        seeds=range(setting.seeds),
        interleaving=INTERLEAVING,
        spread=f"least and most of the seeds; over {TODAY}: 95 % by resampling the tables; shares: ends over tables",
        rows_are="scored by",
        columns=columns,
        rows=[(way, way) for way in ways],
        notes=(
            f"Medians over seeds. Over {TODAY}: geometric mean over tables and seeds; no search within "
            f"{setting.trials} trials counts as {2 * setting.trials}. Intervals hold: the share of the candidates of "
            "each round whose throughput was in the 80 % interval that the model gave before it knew them.",
            *(f"{way}: {WAYS[way].what}" for way in ways),
            f"What is asked of each: at most {ACTIVE.trials:g} of {TODAY}'s trials here and in live searches.",
            *(f"{way} is no default: {'; '.join(judgement(found, way).against)}" for way in others),
            *(_covers(found, way) for way in ways if WAYS[way].model is QuantileModel),
        ),
    )


def _covers(found: Sequence[Search], way: str) -> str:
    share, (least, most) = coverage(found, way), COVERED
    if share is None or share.median is None:
        return f"{way}: no round was judged"
    held = "holds" if least <= share.median <= most else "does not hold"
    return f"{way}: that 80 % intervals cover {least:.0%} to {most:.0%} of the next round {held}: {share.median:.1%}"


def _trials(found: Sequence[Search], table: str, most: int, way: str) -> str:
    trials = [each.trials for each in found if (each.table, each.way) == (table, way)]
    return f"{_shown(float(np.median(trials)), most)} ({_shown(min(trials), most)} to {_shown(max(trials), most)})"


def _shown(trials: float, most: int) -> str:
    return f"{trials:.0f}" if trials <= most else "never"


def _over(found: Sequence[Search], way: str) -> Figure:
    over = against_today(found, way)
    return figure(over.ratio, over.low, over.high)


def _unless_today(value: Callable[[str], Any], way: str) -> Any:
    return None if way == TODAY else value(way)
