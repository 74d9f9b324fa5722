"""The start of a task's search: its strategy, and the given traces that it tries first."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mlir_sched.errors import IllegalTraceError
from mlir_sched.models import SharedCostModel
from mlir_sched.search import EvolutionarySearch, RandomSearch, SearchStrategy
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.trace import Trace
from mlir_sched.tuning.options import RANDOM, TuneOptions


def strategy_for(options: TuneOptions, space: DesignSpace, model: SharedCostModel, number: int) -> SearchStrategy:
    """Return the strategy that a user asked for, seeded by the run's seed and the task's number."""
    rng = np.random.default_rng([options.seed, number])
    if options.strategy == RANDOM:
        return RandomSearch(space, rng)
    return EvolutionarySearch(space, rng, model, options.evolution)


def starts_in(space: DesignSpace, traces: Iterable[Trace]) -> list[Trace]:
    """Return the traces that fit a space, each once, repaired where they were made for another space."""
    starts: dict[str, Trace] = {}
    for trace in traces:
        try:
            repaired = space.repaired(trace)
        except IllegalTraceError:
            continue
        starts.setdefault(repaired.key, repaired)
    return list(starts.values())
