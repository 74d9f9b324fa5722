"""Random search: the control that every other strategy must beat."""

from __future__ import annotations

from mlir_sched.search.strategy import SearchStrategy
from mlir_sched.trace import Trace


class RandomSearch(SearchStrategy):
    """A strategy that draws distinct traces from the space's own prior, and measures all that it draws."""

    preselected = False

    def propose(self, count: int) -> list[Trace]:
        """See :meth:`SearchStrategy.propose`."""
        return self.sample_unseen(count, (None,))
