"""Evolutionary search guided by a cost model: the default strategy."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from heapq import nsmallest

import numpy as np
from numpy.typing import NDArray

from mlir_sched.errors import IllegalTraceError, UserError
from mlir_sched.models.shared_model import SharedCostModel
from mlir_sched.search.mutators import MUTATION_WEIGHTS, mutate_trace
from mlir_sched.search.strategy import Observation, SearchSpace, SearchStrategy
from mlir_sched.trace import Trace

JUDGED = 256
"""Most candidates of one round on which the model is judged: they are compared in pairs."""
UNSURE = 0.65
"""Rank accuracy on a round below which :attr:`Acquisition.PING_PONG` has the model learn."""


class Acquisition(StrEnum):
    """What is expected of a trace before it is measured, from the mean and the spread of the model's predictions."""

    UCB = "ucb"
    """The mean plus :attr:`EvolutionaryOptions.exploration` times the spread: an upper confidence bound."""
    MEAN = "mean"
    """The mean alone."""
    UNCERTAINTY = "uncertainty"
    """The spread alone: for candidates that are to teach, and not to be fast."""
    PING_PONG = "ping_pong"
    """The spread alone where the model ranked the last round badly (:data:`UNSURE`), else the mean."""


@dataclass(frozen=True)
class EvolutionaryOptions:
    """How the population is made and changed, and how suggestions are picked from it.

    "Measured" means chosen with searches of 200 trials over the synthetic spaces of ``search/synthetic_space.py``;
    ratios are geometric means of best time / best known time over 12 to 18 searches, so that differences below 0.03
    mean little.

    Attributes:
        population: Traces per generation, >= 1. Source: measured, 512, MetaSchedule's number, is no better, and a
            round takes three times as long.
        measured_share: Share of the first generation taken by the fastest measured traces, 0..1; the rest are fresh
            samples. Source: 0.2, MetaSchedule.
        generations: Times the population is renewed, >= 0. Source: 4, MetaSchedule.
        mutation_chance: Chance that a child is a mutant; the rest are copies of their parent. Source: 0.85,
            MetaSchedule.
        random_share: Share of suggestions that are fresh samples, on average. Source: 0.05, MetaSchedule.
        acquisition: A trace's score, one of :class:`Acquisition`. Source: measured on tables of real spaces, none saves
            a tenth of ``ucb``'s trials (docs/search-strategies.md). The two in turns are ALT's (Zeng et al., ICCD
            2020), our rule for the turns is the accuracy on the last round.
        exploration: Weight of the spread in ``ucb``. Source: measured, 1.04 after 200 trials against 1.11 with 0.
        pool_factor: Size of the pool of best scored traces, as a multiple of the suggestions, >= 1; the suggestions are
            a spread-out selection from the pool. Source: measured, 3 gives 1.06 after 200 trials, 6 the same but
            later, 1 gives 1.10.
        first_pool: The same for the first suggestions, whose pool is fresh samples of all sketches in turn. Source:
            measured, 1 is the best start (1.95 after 16 trials against 2.47 with 4, 2.79 with 16): traces far from all
            others are mostly slow.
        max_repairs: Most children tried in one ``suggest``; at 0.3 ms each they take less than a second.
        mutation_weights: Relative chance that a decision is mutated, by the kind of its distribution.
    """

    population: int = 128
    measured_share: float = 0.2
    generations: int = 4
    mutation_chance: float = 0.85
    random_share: float = 0.05
    acquisition: str = Acquisition.UCB
    exploration: float = 0.5
    pool_factor: int = 3
    first_pool: int = 1
    max_repairs: int = 3000
    mutation_weights: Mapping[str, float] = field(default_factory=lambda: MUTATION_WEIGHTS)

    def __post_init__(self) -> None:
        if self.acquisition not in list(Acquisition):
            raise UserError(f"acquisition must be one of {', '.join(Acquisition)}, but got {self.acquisition!r}")

    def key(self) -> str:
        """Return every option with its name as JSON text: equal options have equal keys."""
        options = {each.name: getattr(self, each.name) for each in fields(self)}
        return json.dumps(options, default=dict, sort_keys=True)

    def __call__(self, space: SearchSpace, rng: np.random.Generator, model: SharedCostModel) -> EvolutionarySearch:
        """Return the search with these options: options are given in place of a strategy."""
        return EvolutionarySearch(space, rng, model, self)


class EvolutionarySearch(SearchStrategy):
    """A search that evolves a population towards high predicted scores and suggests the best unmeasured traces.

    Until the model can predict, suggestions are fresh samples of all sketches in turn. Then each ``suggest``:

    1. starts from the fastest measured traces and fresh samples,
    2. renews the population some times: parents are drawn in proportion to their score, children are mutants
       or copies, and no generation holds a trace twice,
    3. returns traces that are far from each other, chosen among the best scored of all generations, and a few fresh
       samples.

    Args:
        model: The cost model, which learns from this search and from the other searches that share it.

    Source: MetaSchedule (Shao et al., NeurIPS 2022; TVM ``evolutionary_search.cc``); ours are the spread-out
    selection and the use of the spread of predictions. Crosses of two parents, 0.3 of the children beside 0.6 mutants,
    were measured to be neither better nor worse.
    """

    def __init__(
        self,
        space: SearchSpace,
        rng: np.random.Generator,
        model: SharedCostModel,
        options: EvolutionaryOptions | None = None,
    ) -> None:
        super().__init__(space, rng)
        self._model = model.task(space)
        self._options = options or EvolutionaryOptions()
        self._rank_accuracy: list[float] = []

    @property
    def rank_accuracy(self) -> tuple[float, ...]:
        """See :attr:`SearchStrategy.rank_accuracy`."""
        return tuple(self._rank_accuracy)

    def observe(self, observations: Sequence[Observation]) -> None:
        """Learn the results of candidates; the next ``suggest`` refits the model."""
        fresh = {o.trace.key: o for o in observations if o.trace.key not in self.observed}
        self._judge_model(list(fresh.values())[:JUDGED])
        super().observe(observations)
        self._model.learn(self.observed, fresh)

    def propose(self, count: int) -> list[Trace]:
        """See :meth:`SearchStrategy.propose`."""
        options = self._options
        if not self._model.refresh():
            pool = self.sample_unseen(count * options.first_pool, self.space.sketches)
            return self._choose(pool, count)
        wanted = count - int(self.rng.binomial(count, options.random_share))
        chosen = self._choose(self._evolve()[: wanted * options.pool_factor], wanted)
        return chosen + self.sample_unseen(count - len(chosen), (None,), [trace.key for trace in chosen])

    def _evolve(self) -> list[Trace]:
        """Return the unseen traces of all generations, best score first."""
        population = self._first_generation()
        if not population:
            return []
        scores = self._scores(population)
        met = self._unseen(population, scores)
        for _ in range(self._options.generations):
            population = self._next_generation(population, scores)
            scores = self._scores(population)
            met |= self._unseen(population, scores)
        return [trace for _, trace in sorted(met.values(), key=lambda pair: (-pair[0], pair[1].key))]

    def _unseen(self, traces: list[Trace], scores: NDArray[np.float64]) -> dict[str, tuple[float, Trace]]:
        scored = zip(scores.tolist(), traces, strict=True)
        return {trace.key: (score, trace) for score, trace in scored if trace.key not in self._seen}

    def _first_generation(self) -> list[Trace]:
        """Return the fastest measured traces and fresh samples; of what was not checked, only what is slower than that.

        Slow code that is wrong misleads no search: its children have to be faster to count, and are checked then.
        """
        size = self._options.population
        timed = [(o.seconds, key, o) for key, o in self.observed.items() if o.seconds is not None]
        best_s = min((seconds for seconds, _, o in timed if o.proven), default=math.inf)
        usable = (each for each in timed if each[2].proven or each[0] > best_s)
        fastest = nsmallest(int(size * self._options.measured_share), usable, key=lambda entry: entry[:2])
        best = [o.trace for *_, o in fastest]
        return best + self.sample_unseen(size - len(best), (None,), [trace.key for trace in best])

    def _next_generation(self, parents: list[Trace], scores: NDArray[np.float64]) -> list[Trace]:
        chances = np.maximum(scores, 0.0) if (scores > 0.0).any() else np.ones(len(scores))
        bounds = np.cumsum(chances)
        children: dict[str, Trace] = {}
        size = self._options.population
        for _ in range(min(2 * size, self._options.max_repairs // self._options.generations)):
            if len(children) == size:
                break
            drawn, fate = self.rng.random(2)
            parent = parents[np.searchsorted(bounds[:-1], drawn * bounds[-1], side="right")]
            child = self._mutant(parent) if fate < self._options.mutation_chance else parent
            if child is not None:
                children.setdefault(child.key, child)
        return list(children.values()) or parents

    def _mutant(self, parent: Trace) -> Trace | None:
        changed = mutate_trace(parent, self.rng, self._options.mutation_weights)
        try:
            return None if changed is None else self.space.repaired(changed)
        except IllegalTraceError:
            return None

    def _scores(self, traces: Sequence[Trace]) -> NDArray[np.float64]:
        mean, spread = self._model.predict_with_spread(traces)
        match self._acquisition():
            case Acquisition.MEAN:
                return mean
            case Acquisition.UNCERTAINTY:
                return spread
        return np.asarray(mean + self._options.exploration * spread, dtype=np.float64)

    def _acquisition(self) -> str:
        """Return what scores are at present."""
        if self._options.acquisition != Acquisition.PING_PONG:
            return self._options.acquisition
        unsure = bool(self._rank_accuracy) and self._rank_accuracy[-1] < UNSURE
        return Acquisition.UNCERTAINTY if unsure else Acquisition.MEAN

    def _choose(self, pool: list[Trace], count: int) -> list[Trace]:
        """Return ``count`` traces of a pool that are far from each other, among them its first; all if it has fewer."""
        if len(pool) <= count:
            return pool
        return [pool[index] for index in spread_out(self.space.features(pool), count)]

    def _judge_model(self, results: Sequence[Observation]) -> None:
        if self._model.fitted and len(results) > 1:
            self._rank_accuracy.append(self._model.judged(results))


def spread_out(features: NDArray[np.float32], count: int) -> list[int]:
    """Return the indices of ``count`` rows far from each other, the first row first.

    Each next row is the row that is farthest from its nearest chosen row (the first of equals). Features are scaled to
    unit variance; constant features do not count.

    Args:
        features: ``[n_rows, n_features]``.
        count: Number of rows to choose, 1..``n_rows``.

    Source: farthest-point traversal (Gonzalez, 1985).
    """
    rows = features.astype(np.float64)
    spread = rows.std(axis=0)
    rows = rows[:, spread > 0] / spread[spread > 0]
    chosen = [0]
    nearest = np.full(len(rows), np.inf)
    while len(chosen) < count:
        nearest = np.minimum(nearest, np.square(rows - rows[chosen[-1]]).sum(axis=1))
        nearest[chosen[-1]] = -1.0
        chosen.append(int(nearest.argmax()))
    return chosen
