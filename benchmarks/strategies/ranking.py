"""How well a model ranks the candidates of a pool that it was not taught: with rows of others, and with few of its own.

Every pool is left out in turn: its shape, its family, or its machine. A model is fitted on rows of the others, and on
the pool's first random draws where it may have own rows; it ranks the other draws. What a search chose is not ranked:
it is fast already, and a model with own rows would rank what such a model has chosen.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, geometric_mean
from types import MappingProxyType
from typing import Protocol, TypeVar

import numpy as np

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Columns, Figure, ResultColumn, ResultTable, Unit, figure
from benchmarks.search.random_orders import expected_best
from benchmarks.strategies.pools import Pool, Sources, sources_of, taught
from mlir_sched.models.cost_model import CostModel, CostModelFactory
from mlir_sched.models.metrics import pair_accuracy

FAVOURITES = (1, 3, 10)
"""Numbers of favourites whose best is looked at."""
ORDER = "random order"
"""What stands in place of sources where no model ranks."""


class OfFamily(Protocol):
    """What was found of a pool."""

    @property
    def family(self) -> str:
        """The pool's family."""


T = TypeVar("T", bound=OfFamily)


@dataclass(frozen=True)
class Ranked:
    """How one pool was ranked.

    Attributes:
        pool, family: The pool's task and its family.
        sources: What the model knew beside own rows; :data:`ORDER` where no model ranks.
        own: Own rows that are known.
        accuracy: Share of pairs of the other random draws that are ranked correctly.
        best: Best of the first :data:`FAVOURITES` among them, over the fastest row of the pool.
        fit_s, predict_s: Seconds of the processor for the fit, and for one prediction of them.
        number: Number of the pool, as machines have pools of one task.
    """

    pool: str
    family: str
    sources: str
    own: int
    accuracy: float
    best: tuple[float, ...]
    fit_s: float = 0.0
    predict_s: float = 0.0
    number: int = 0

    @property
    def what(self) -> tuple[str, int]:
        """What is averaged over pools."""
        return self.sources, self.own


def ranked(
    pools: Sequence[Pool],
    make: CostModelFactory,
    own: Sequence[int],
    most: int,
    kinds: Collection[Sources] = tuple(Sources),
) -> Iterator[Ranked]:
    """Yield how every pool is ranked in random order, and by models with each kind of sources.

    Where there are no such sources, too few random draws, or too few rows for the model, there is nothing.

    Args:
        make: Makes a model.
        own: Numbers of own rows.
        most: Most rows of others that a model learns from.
        kinds: Kinds of sources.
    """
    for number, pool in enumerate(pools):
        for count in own:
            if count + max(FAVOURITES) > len(pool.random):
                continue
            yield replace(_in_random_order(pool, count), number=number)
            for kind in kinds:
                sources = sources_of(pool, kind, pools)
                if sources or (kind is Sources.NOTHING and count):
                    for found in _by_model(pool, kind, sources, count, make(), most):
                        yield replace(found, number=number)


def _by_model(
    pool: Pool, kind: Sources, sources: Sequence[Pool], own: int, model: CostModel, most: int
) -> Iterator[Ranked]:
    rows = taught(pool, sources, model, most)
    group, known = len(rows), pool.random[:own]
    if own:
        rows.append(pool.measured(model, group, known))
    left = pool.random[own:]
    asked = pool.rows(model, group, left)
    start = time.process_time()
    model.fit(rows)
    fitted = time.process_time()
    if not model.fitted:
        return
    scores = model.predict(asked)
    predict_s = time.process_time() - fitted
    order = [left[place] for place in np.argsort(-scores, kind="stable")]
    best = tuple(float(pool.ended_s[order[:count]].min()) / pool.best_s for count in FAVOURITES)
    accuracy = pair_accuracy(scores, pool.best_s / pool.seconds[list(left)])
    yield Ranked(pool.task.name, pool.family, kind, own, accuracy, best, fitted - start, predict_s)


def _in_random_order(pool: Pool, own: int) -> Ranked:
    seconds = pool.ended_s[list(pool.random[own:])].tolist()
    best = tuple(expected_best(seconds, count) / pool.best_s for count in FAVOURITES)
    return Ranked(pool.task.name, pool.family, ORDER, own, 0.5, best)


def results_table(
    found: Sequence[Ranked],
    model: str,
    publishing: Publishing,
    further: Columns[Sequence[Ranked]] = MappingProxyType({}),
    notes: Sequence[str] = (),
) -> ResultTable:
    """Return a table with a row per kind of sources and number of own rows; of seconds it says nothing.

    Args:
        model: The model's name.
        further, notes: Columns and notes beside those that every model has.
    """
    kinds = [ORDER, *Sources]
    groups = sorted({each.what for each in found}, key=lambda what: (kinds.index(what[0]), what[1]))
    columns: Columns[Sequence[Ranked]] = {
        ResultColumn("pools", Unit.COUNT): len,
        ResultColumn("pair accuracy", Unit.RATIO): partial(over_families, fmean, lambda each: each.accuracy),
        **{
            ResultColumn(f"best of {count}", Unit.RATIO): partial(over_families, geometric_mean, partial(_best, at))
            for at, count in enumerate(FAVOURITES)
        },
        **further,
    }
    return publishing.table(
        name=f"strategies-ranking-{model}",
        question="search",
        features=True,
        title=f"How the cost model {model} ranks the candidates of a dispatch that it was not taught",
        threads=1,
        seeds=(),
        interleaving="Nothing is timed: measured candidates are ranked",
        spread="least and largest of the families' means",
        rows_are="taught by",
        columns=columns,
        rows=[(words(*what), [each for each in found if each.what == what]) for what in groups],
        notes=(
            "Pair accuracy and favourites are among the random draws that the model does not know; the best of its "
            "favourites is relative to the best of the whole pool, which a search found. "
            "A failure counts as the slowest candidate. Means over pools; in random order, over all orders.",
            *notes,
        ),
    )


def words(sources: str, own: int) -> str:
    """Return what a model knows in words."""
    return ", ".join([*([] if sources == Sources.NOTHING else [sources]), *([f"{own} own rows"] if own else [])])


def _best(at: int, found: Ranked) -> float:
    return found.best[at]


def over_families(mean: Callable[[Sequence[float]], float], value: Callable[[T], float], group: Sequence[T]) -> Figure:
    """Return a mean over the pools of a group, with the least and the largest of its families."""
    families = dict.fromkeys(each.family for each in group)
    means = [mean([value(each) for each in group if each.family == family]) for family in families]
    return figure(mean([value(each) for each in group]), *((min(means), max(means)) if len(means) > 1 else ()))
