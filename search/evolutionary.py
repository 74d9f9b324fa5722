"""Evolutionary search guided by a cost model: the default strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mlir_sched.errors import IllegalTraceError
from mlir_sched.models.metrics import pair_accuracy
from mlir_sched.models.shared_model import SharedCostModel
from mlir_sched.search.diversity import spread_out
from mlir_sched.search.mutators import MUTATION_WEIGHTS, cross_traces, mutate_trace
from mlir_sched.search.strategy import DesignSpace, Observation, Strategy
from mlir_sched.trace import Trace


@dataclass(frozen=True)
class EvolutionaryOptions:
    """How the population is made, changed and picked from."""

    population: int = 512
    measured_share: float = 0.2
    generations: int = 4
    mutation_chance: float = 0.85
    crossover_chance: float = 0.0
    selection: str = "score"
    power: float = 1.0
    random_share: float = 0.05
    first_pool: int = 4
    first_mode: str = "spread"
    max_replays: int = 3000
    batch_mode: str = "top"
    kappa: float = 0.0
    elite: int = 3
    mutation_weights: Mapping[str, float] = field(default_factory=lambda: MUTATION_WEIGHTS)


class EvolutionarySearch(Strategy):
    def __init__(
        self,
        space: DesignSpace,
        rng: np.random.Generator,
        model: SharedCostModel,
        options: EvolutionaryOptions | None = None,
    ) -> None:
        super().__init__(space, rng)
        self._model = model
        self._task = model.add_task()
        self._options = options or EvolutionaryOptions()
        self._rows: dict[str, NDArray[np.float32]] = {}
        self._accuracy: list[float] = []

    def observe(self, observations: Sequence[Observation]) -> None:
        new = [o for o in observations]
        super().observe(new)
        todo = [o.trace for o in new if o.trace.key not in self._rows]
        if todo:
            for t, row in zip(todo, self._space.features(todo), strict=True):
                self._rows[t.key] = row
        keys = sorted(self._observed)
        if keys:
            self._model.update(
                self._task,
                np.stack([self._rows[k] for k in keys]),
                np.array([self._observed[k].seconds or np.inf for k in keys]),
            )

    def _propose(self, count: int) -> list[Trace]:
        if not self._model.refresh():
            return self._first_batch(count)
        ranked = self._evolve()
        o = self._options
        n_random = int(self._rng.binomial(count, o.random_share))
        picks = self._pick(ranked, count - n_random)
        picks += self._sample_unseen(count - len(picks), (None,), [t.key for t in picks])
        return picks

    def _pick(self, ranked: list[tuple[float, Trace]], n: int) -> list[Trace]:
        o = self._options
        if o.batch_mode == "top":
            return [t for _, t in ranked[:n]]
        if o.batch_mode == "spread":
            top = [t for _, t in ranked[: o.elite * n]]
            if len(top) <= n:
                return top
            return [top[i] for i in spread_out(self._space.features(top), n)]
        raise ValueError

    def _first_batch(self, count: int) -> list[Trace]:
        pool = self._sample_unseen(count * self._options.first_pool, self._space.sketches)
        if len(pool) <= count or self._options.first_pool == 1:
            return pool[:count]
        return [pool[i] for i in spread_out(self._space.features(pool), count)]

    def _score(self, pop: list[Trace]) -> NDArray[np.float64]:
        f = self._space.features(pop)
        if self._options.kappa and hasattr(self._model._model, "predict_with_spread"):
            m, s = self._model._model.predict_with_spread(f)
            return m + self._options.kappa * s
        return self._model.predict(f)

    def _evolve(self) -> list[tuple[float, Trace]]:
        o = self._options
        self._replays = 0
        pop = self._initial()
        found: dict[str, tuple[float, Trace]] = {}
        for generation in range(o.generations + 1):
            if not pop:
                break
            scores = self._score(pop)
            for s, t in zip(scores.tolist(), pop, strict=True):
                if t.key not in self._seen:
                    found[t.key] = (s, t)
            if generation < o.generations:
                pop = self._next(pop, scores)
        return sorted(found.values(), key=lambda p: (-p[0], p[1].key))

    def _initial(self) -> list[Trace]:
        o = self._options
        best = sorted(
            (x for x in self._observed.values() if x.seconds is not None), key=lambda x: (x.seconds, x.trace.key)
        )
        pop = [x.trace for x in best[: int(o.population * o.measured_share)]]
        pop += self._sample_unseen(o.population - len(pop), (None,), [t.key for t in pop])
        return pop

    def _weights(self, scores):
        o = self._options
        if o.selection == "score":
            w = np.maximum(scores, 0.0) ** o.power
        elif o.selection == "rank":
            r = np.argsort(np.argsort(-scores, kind="stable"), kind="stable")
            w = (1.0 + r) ** -o.power
        if w.sum() <= 0:
            w = np.ones(len(scores))
        return np.cumsum(w)

    def _next(self, pop, scores):
        o = self._options
        c = self._weights(scores)
        kept: dict[str, Trace] = {}
        for _ in range(2 * o.population):
            if len(kept) >= o.population or self._replays >= o.max_replays:
                break
            parent = self._draw(pop, c)
            u = self._rng.random()
            if u < o.crossover_chance:
                other = self._draw(pop, c)
                child = cross_traces(parent, other, self._rng) if other.sketch == parent.sketch else parent
                child = self._replay(child)
            elif u < o.crossover_chance + o.mutation_chance:
                child = mutate_trace(parent, self._rng, o.mutation_weights)
                child = self._replay(child) if child else None
            else:
                child = parent
            if child is not None:
                kept.setdefault(child.key, child)
        return list(kept.values())

    def _draw(self, pop, c):
        return pop[int(np.searchsorted(c[:-1], self._rng.random() * c[-1], side="right"))]

    def _replay(self, t):
        self._replays += 1
        try:
            return self._space.replay(t)
        except IllegalTraceError:
            return None
