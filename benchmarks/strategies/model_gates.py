"""What is asked of a cost model before it is ranked for the first time, and what became of it.

A model that passes may be searched with (``strategies live``); ranking alone makes none the default.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from benchmarks.figures.result_table import Cell, Columns, ResultColumn, Unit
from benchmarks.strategies.pools import Pool, Sources
from benchmarks.strategies.ranking import ORDER, Ranked, over_families, words
from benchmarks.strategies.verdict import Judgement, Verdict
from mlir_sched.models.cost_model import CostModelFactory

TREES = "xgboost"
"""The model that others are compared with."""
MANY = 2500
"""Candidates that a model scores at once: about as many as a round of the search ranks."""


@dataclass(frozen=True)
class ModelGate:
    """What is asked of a cost model.

    Attributes:
        sources, own: What the model knows where it is judged.
        gain: By how much its pair accuracy there has to be above that of :data:`TREES`, in the mean over pools.
        fit_s: Most seconds of one core that a fit there takes.
        train_s: Most seconds of one core that a fit on all rows of the pools takes; None where nothing is asked.
        predict_s: Most seconds of one core for the scores of :data:`MANY` candidates; None where nothing is asked.
    """

    sources: Sources
    own: int
    gain: float
    fit_s: float | None = None
    train_s: float | None = None
    predict_s: float | None = None


MODEL_GATES: Mapping[str, ModelGate] = {
    "gaussian-process": ModelGate(Sources.SHAPES, 16, gain=0.01, fit_s=2.0),
    "graph": ModelGate(Sources.FAMILIES, 0, gain=0.03, train_s=600.0, predict_s=0.5),
}
"""The gates by the name of the model."""


@dataclass(frozen=True)
class Speed:
    """How long a model takes on one core.

    Attributes:
        train_s: Seconds of a fit on all rows of the pools.
        predict_s: Seconds of scoring :data:`MANY` candidates.
    """

    train_s: float
    predict_s: float


@dataclass(frozen=True)
class AgainstTrees:
    """How a model and :data:`TREES` ranked the same pools, and how long the model takes."""

    found: Sequence[Ranked]
    trees: Sequence[Ranked]
    speed: Speed

    def columns(self, gate: ModelGate | None) -> Columns[Sequence[Ranked]]:
        """Return what a table of the model has beside the columns of all models."""
        verdict = {ResultColumn("verdict"): lambda group: self._verdict(group, gate)} if gate else {}
        return {ResultColumn(f"over {TREES}", Unit.NUMBER): self._over_trees, **verdict}

    def notes(self, gate: ModelGate | None) -> Iterator[str]:
        """Yield what was asked of the model, how long it takes, and why it is no default."""
        longest = max((each.fit_s for each in self.found), default=0.0)
        yield (
            f"Over {TREES}: pair accuracy less that of {TREES} on the same pools. On one core a fit takes up to "
            f"{longest:.2g} s, on all rows of the pools {self.speed.train_s:.2g} s; {MANY} candidates are scored in "
            f"{self.speed.predict_s:.2g} s"
        )
        if gate:
            times = [
                f"at most {most:g} s for {what}" for what, _, most in self._times(gate, longest) if most is not None
            ]
            asked = [f"{gate.gain:+g} pair accuracy over {TREES} by {words(gate.sources, gate.own)}", *times]
            yield f"What is asked of it: {', '.join(asked)}"
            yield f"No default: {'; '.join(self.judged(gate).against)}"

    def judged(self, gate: ModelGate) -> Judgement:
        """Return what becomes of the model: it stays an option, at least until searches with it are judged."""
        return Judgement(Verdict.OPTION, tuple(self._against(gate)))

    def _against(self, gate: ModelGate) -> Iterator[str]:
        asked = [each for each in self.found if each.what == (gate.sources, gate.own)]
        gains = [gain for each in asked if (gain := self._gain(each)) is not None]
        if not gains:
            yield f"not ranked with {words(gate.sources, gate.own)}"
            return
        if (gain := fmean(gains)) < gate.gain:
            yield f"{gain:+.3f} pair accuracy over {TREES}, where the gate asks for {gate.gain:+g}"
        for what, seconds, most in self._times(gate, max(each.fit_s for each in asked)):
            if most is not None and seconds > most:
                yield f"{seconds:.2g} s for {what}, where the gate asks for {most:g}"
        yield "no search was judged with it"

    def _times(self, gate: ModelGate, fit_s: float) -> tuple[tuple[str, float, float | None], ...]:
        """Return what takes time, how long, and how long it may take."""
        return (
            ("a fit", fit_s, gate.fit_s),
            ("a fit on all rows of the pools", self.speed.train_s, gate.train_s),
            (f"{MANY} scores", self.speed.predict_s, gate.predict_s),
        )

    def _verdict(self, group: Sequence[Ranked], gate: ModelGate) -> Cell:
        return self.judged(gate).verdict if group[0].what == (gate.sources, gate.own) else None

    def _over_trees(self, group: Sequence[Ranked]) -> Cell:
        compared = [each for each in group if self._gain(each) is not None]
        return over_families(fmean, lambda each: self._gain(each) or 0.0, compared) if compared else None

    def _gain(self, found: Ranked) -> float | None:
        """Return by how much pair accuracy on a pool is above that of trees; None where these ranked nothing."""
        by_trees = self._accuracy.get((found.number, found.what))
        return None if by_trees is None or found.sources == ORDER else found.accuracy - by_trees

    @cached_property
    def _accuracy(self) -> Mapping[tuple[int, tuple[str, int]], float]:
        return {(each.number, each.what): each.accuracy for each in self.trees}


def speed_of(pools: Sequence[Pool], make: CostModelFactory) -> Speed:
    """Return how long a model takes; the candidates that it scores are those of the first pool, again and again."""
    model, (first, *_) = make(), pools
    rows = [pool.measured(model, group, range(len(pool.seconds))) for group, pool in enumerate(pools)]
    asked = first.rows(model, 0, [row % len(first.seconds) for row in range(MANY)])
    start = time.process_time()
    model.fit(rows)
    fitted = time.process_time()
    if model.fitted:
        model.predict(asked)
    return Speed(fitted - start, time.process_time() - fitted)
