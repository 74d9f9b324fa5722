"""Small changes of a trace: one decision mutated.

The results may be illegal: they must go through ``SearchSpace.repaired``, which repairs or rejects them.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from mlir_sched.trace import Decision, Trace

MUTATION_WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"perfect_tile": 1.0, "categorical": 0.3, "int_range": 0.3, "power_of_two": 0.3, "permutation": 0.3}
)
"""Relative chance that a decision is mutated, by the kind of its distribution.

Source: MetaSchedule, too, mutates mostly tiles (MutateTileSize 0.90, MutateComputeLocation 0.05, MutateUnroll 0.03,
MutateParallel 0.02; TVM ``mutator.cc``). In MetaSchedule the decisions of a kind share a weight, and most sketches
have one unroll step; here each decision has the weight, and categorical choices decide more.
"""


def mutate_trace(trace: Trace, rng: np.random.Generator, weights: Mapping[str, float]) -> Trace | None:
    """Return a copy of a trace with one decision changed to another value of its support, mostly a near value.

    Before: tile_m = (64, 8), unroll = 4    After: tile_m = (32, 8), unroll = 4
    None is returned when no decision can take another value.

    Args:
        weights: Relative chance of a decision by its distribution's kind, >= 0; an absent kind never mutates.
    """
    movable = [d for d in trace.decisions if weights.get(d.distribution.kind, 0.0) > 0 and _has_choice(d)]
    if not movable:
        return None
    bounds = np.cumsum([weights[d.distribution.kind] for d in movable])
    decision = movable[int(np.searchsorted(bounds[:-1], rng.random() * bounds[-1], side="right"))]
    value = decision.distribution.mutate(decision.value, rng)
    return None if value is None else trace.with_value(decision.name, value)


def _has_choice(decision: Decision) -> bool:
    return len(decision.distribution.support()) > 1
