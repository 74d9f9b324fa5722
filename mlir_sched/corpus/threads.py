"""Candidates that were measured on another number of threads: the same code within a workgroup, spread anew."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from mlir_sched.errors import IllegalTraceError
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.features import EVENNESS, WORKGROUPS
from mlir_sched.trace import Trace

DISTRIBUTION = "workgroup_"
"""How the names of the decisions begin that spread a dispatch over workgroups."""
DRAWS = 24
"""Ways to spread a dispatch that are drawn: half a millisecond each."""
MOST_PER_THREAD = 4
"""Most workgroups that a thread should get: each takes time to start."""


def spread_anew(space: DesignSpace, trace: Trace) -> Trace:
    """Return a trace with its decisions within a workgroup, and others on how the dispatch is spread over workgroups.

    Of some draws that one is returned which gives all threads of the space's target equally many workgroups, at most
    :data:`MOST_PER_THREAD`, and changes fewest of the other decisions; where none does, the most even one. A trace
    without such decisions, or that cannot be repaired, is returned as it is. The result is deterministic.
    """
    within = tuple(each for each in trace.decisions if not each.name.startswith(DISTRIBUTION))
    kept, rng = Trace(trace.sketch, within), np.random.default_rng(int(trace.key, 16))
    if len(within) == len(trace.decisions):
        return trace

    def cost(drawn: Trace) -> tuple[bool, int, float, float]:
        row, cores = space.features([drawn])[0], space.target.cores
        per_thread, idle = (2 ** float(row[WORKGROUPS]) - 1) / cores, 1 - float(row[EVENNESS])
        changed = sum(drawn.values.get(name) != value for name, value in kept.values.items())
        return idle > 0 or round(per_thread) > MOST_PER_THREAD, changed, idle, per_thread

    drawn = list[Trace]()
    for _ in range(DRAWS):
        with suppress(IllegalTraceError):
            drawn.append(space.repaired(kept, rng))
    return min(drawn, key=cost, default=trace)
