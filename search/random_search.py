"""Random search: the control that every other strategy must beat."""

from __future__ import annotations

from mlir_sched.search.strategy import SearchStrategy
from mlir_sched.trace import Trace


class RandomSearch(SearchStrategy):
    """Draws from the space's own prior and never twice the same trace."""

    def _propose(self, count: int) -> list[Trace]:
        return self._sample_unseen(count, (None,))
