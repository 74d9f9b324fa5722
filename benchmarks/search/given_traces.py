"""Given candidates: these are measured, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlir_sched.errors import IllegalTraceError
from mlir_sched.search.strategy import SearchSpace, SearchStrategy
from mlir_sched.trace import Trace


class GivenTraces(SearchStrategy):
    """A strategy that suggests given traces in order, repaired for the space; traces beyond repair are dropped.

    No option of ``tune`` chooses it: it serves programs that measure chosen candidates, such as all points of a space
    (``benchmarks/search/record_space.py``).

    Args:
        space: What the traces are repaired for; it may be of another shape or target than the traces came from.
        rng: Not used; every strategy takes a generator.
        traces: The candidates, for instance the best of another machine.

    Source: MetaSchedule's ReplayTrace (TVM ``replay_trace.cc``), which redraws the decisions instead.
    """

    def __init__(self, space: SearchSpace, rng: np.random.Generator, traces: Sequence[Trace]) -> None:
        super().__init__(space, rng)
        self._waiting = list(reversed(traces))
        self._rejected: list[tuple[Trace, str]] = []

    @property
    def rejected(self) -> tuple[tuple[Trace, str], ...]:
        """The traces dropped so far and why."""
        return tuple(self._rejected)

    def propose(self, count: int) -> list[Trace]:
        """See :meth:`SearchStrategy.propose`."""
        proposed: dict[str, Trace] = {}
        while self._waiting and len(proposed) < count:
            trace = self._repaired(self._waiting.pop())
            if trace is not None and trace.key not in self._seen:
                proposed.setdefault(trace.key, trace)
        return list(proposed.values())

    def _repaired(self, trace: Trace) -> Trace | None:
        try:
            return self.space.repaired(trace)
        except IllegalTraceError as error:
            self._rejected.append((trace, str(error)))
            return None
