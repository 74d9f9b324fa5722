"""Which of a pool's candidates teach models most, at equal number: the fastest, the least certain, or any.

Every pool is left out in turn. Of the other shapes of its family, a part of the candidates teaches a model, which then
ranks the pool's random draws. Half of that part are random draws; the rest is chosen among all others as a collection
does it (``corpus collect --select``), in rounds, by a model that knows all other pools and what is chosen so far.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpus.sets import SETS, Select
from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Columns, Figure, ResultColumn, ResultTable, Unit, figure
from benchmarks.kept import Kept
from benchmarks.strategies.pools import Pool, Sources, sources_of, taught
from benchmarks.strategies.ranking import over_families
from benchmarks.strategies.verdict import Compared, Judgement, Pair, Verdict, compared
from mlir_sched.models import CostModel, Measured, Rows, XGBoostModel
from mlir_sched.models.metrics import pair_accuracy
from mlir_sched.search import EvolutionaryOptions
from mlir_sched.text import say

SHARE = 0.6
"""Part of the candidates from which the least certain have to teach as much as all do."""
MOST = 600
"""Most rows of other pools that the choosing model learns from."""
ALL, RANDOM = "all rows", "random"
"""What a model learns from where nothing is chosen, or by chance."""
WAYS = (ALL, RANDOM, *(each.value for each in Select))


@dataclass(frozen=True)
class Ranked:
    """How a pool was ranked by a model that other shapes taught.

    Attributes:
        pool, family: The pool's task, and its family.
        way: How the candidates that teach were chosen, one of :data:`WAYS`.
        rows: How many there are.
        accuracy: Share of the pairs of the pool's random draws that are ranked correctly.
    """

    pool: str
    family: str
    way: str
    seed: int
    rows: int
    accuracy: float


KEPT = Kept("ranked", list[Ranked], 1)


def ranked(pools: Sequence[Pool], seeds: int, keep: Path) -> Iterator[Ranked]:
    """Yield how every pool that has other shapes is ranked, in every way with every seed; those of a pool are kept.

    Args:
        seeds: How often the random half is drawn.
    """
    asked = {"seeds": seeds, "pools": [f"{each.task.key} {each.task.context} {len(each.seconds)}" for each in pools]}
    for number, pool in enumerate(pools):
        sources = sources_of(pool, Sources.SHAPES, pools)
        if not sources:
            continue
        file = keep / f"selection-{number}.json"
        if (found := KEPT.read(file, asked)) is None:
            found = [_ranked(pool, sources, pools, way, seed) for way in WAYS for seed in range(seeds)]
            KEPT.write(file, found, asked)
        say(f"{pool.task.name}: {', '.join(f'{way} {_mean(found, way):.3f}' for way in WAYS)}")
        yield from found


def _ranked(pool: Pool, sources: Sequence[Pool], pools: Sequence[Pool], way: str, seed: int) -> Ranked:
    model = XGBoostModel()
    rows = [
        source.measured(model, group, chosen_rows(source, way, _others(source, pool, pools), seed))
        for group, source in enumerate(sources)
    ]
    model.fit(rows)
    scores, _ = _predicted(model, pool.rows(model, len(rows), pool.random))
    accuracy = pair_accuracy(scores, pool.best_s / pool.seconds[list(pool.random)])
    return Ranked(pool.task.name, pool.family, way, seed, sum(len(each.rows) for each in rows), accuracy)


def _others(source: Pool, pool: Pool, pools: Sequence[Pool]) -> list[Pool]:
    """Return what is known where candidates of a source are chosen, to rank a pool, which is not known."""
    known = sources_of(source, Sources.BOTH, pools)
    return [each for each in known if each.task.dispatch != pool.task.dispatch]


def chosen_rows(source: Pool, way: str, others: Sequence[Pool], seed: int) -> list[int]:
    """Return the rows of a pool that are to teach, in the order of their choice.

    Args:
        way: One of :data:`WAYS`.
        others: What the choosing model knows beside them.
    """
    if way == ALL:
        return list(range(len(source.seconds)))
    rng, count = np.random.default_rng(seed), round(SHARE * len(source.seconds))
    chosen: list[int] = rng.permutation(source.random)[: count // 2].tolist()
    while len(chosen) < count:
        rest = [row for row in range(len(source.seconds)) if row not in chosen]
        scores = rng.random(len(rest)) if way == RANDOM else _scores(source, Select(way), others, chosen, rest)
        size = min(SETS["pools"].round_size, count - len(chosen))
        chosen += [rest[place] for place in np.argsort(-scores, kind="stable")[:size]]
    return chosen


def _scores(
    source: Pool, select: Select, others: Sequence[Pool], chosen: Sequence[int], rest: Sequence[int]
) -> NDArray[np.float64]:
    """Return how much the rest of a pool's rows is wanted."""
    model = XGBoostModel()
    known: list[Measured] = taught(source, others, model, MOST)
    group = len(known)
    model.fit([*known, source.measured(model, group, chosen)])
    mean, spread = _predicted(model, source.rows(model, group, rest))
    return spread if select is Select.UNCERTAINTY else mean + EvolutionaryOptions.exploration * spread


def _predicted(model: CostModel, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return score and uncertainty per row; zeros of a model that had too little to learn from."""
    return model.predict_with_spread(rows) if model.fitted else (np.zeros(len(rows)), np.zeros(len(rows)))


def against_all(found: Sequence[Ranked], way: str) -> Compared:
    """Return the accuracy after a choice over that of all rows."""
    whole = {(each.pool, each.seed): each.accuracy for each in found if each.way == ALL}
    own = [each for each in found if each.way == way]
    return compared(
        [Pair(each.pool, each.family, each.seed, each.accuracy / whole[each.pool, each.seed]) for each in own]
    )


def judgement(found: Sequence[Ranked]) -> Judgement:
    """Return what becomes of pools whose second half is the least certain: the default, if they teach as all rows."""
    least, whole, fastest = (_mean(found, way) for way in (Select.UNCERTAINTY, ALL, Select.FASTEST))
    against = [
        *([f"{least:.3f} of the pairs from {SHARE:.0%} of the rows, {whole:.3f} from all"] if least < whole else []),
        *([f"the fastest teach as much: {fastest:.3f}"] if least <= fastest else []),
    ]
    return Judgement(Verdict.OPTION if against else Verdict.DEFAULT, tuple(against))


def results_table(found: Sequence[Ranked], seeds: int, publishing: Publishing) -> ResultTable:
    """Return a table with a row per way."""
    columns: Columns[str] = {
        ResultColumn("rows", Unit.NUMBER): lambda way: fmean(each.rows for each in found if each.way == way),
        ResultColumn("pair accuracy", Unit.RATIO): partial(_accuracy, found),
        ResultColumn(f"over {ALL}", Unit.RATIO): partial(_over, found),
        ResultColumn("verdict"): lambda way: judgement(found).verdict if way == Select.UNCERTAINTY else None,
    }
    return publishing.table(
        name="strategies-acquisition-selection",
        question="search",
        features=True,
        title=f"What {SHARE:.0%} of the candidates of other shapes teach a model, by how they are chosen",
        threads=1,
        seeds=range(seeds),
        interleaving="Nothing is timed: measured candidates are ranked",
        spread="accuracy: least and largest of the families' means; over all rows: 95 % by resampling the pools",
        rows_are="chosen",
        columns=columns,
        rows=[(way, way) for way in WAYS],
        notes=(
            f"Means over {len({each.pool for each in found})} pools and the seeds. Half of the candidates that teach "
            "are random draws; the rest is what a model of the other pools expects to be fastest, is least sure "
            "of, or any. A pool holds what a search has chosen: of what is left, less is slow than in a design space.",
            "What is asked of uncertainty: at least the accuracy of all rows, and more than that of fastest.",
            *(f"uncertainty is no default: {each}" for each in judgement(found).against),
        ),
    )


def _mean(found: Sequence[Ranked], way: str) -> float:
    return fmean(each.accuracy for each in found if each.way == way)


def _accuracy(found: Sequence[Ranked], way: str) -> Figure:
    return over_families(fmean, lambda each: each.accuracy, [each for each in found if each.way == way])


def _over(found: Sequence[Ranked], way: str) -> Figure | None:
    if way == ALL:
        return None
    over = against_all(found, way)
    return figure(over.ratio, over.low, over.high)
