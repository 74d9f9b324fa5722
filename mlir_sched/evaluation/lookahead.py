"""What a search evaluates next, decided before the outcomes of the current round are known.

The code of the next round can then be chosen and compiled while the candidates of the current round are measured.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir_sched.tasks.task import Task


@dataclass(frozen=True)
class Upcoming:
    """Scripts that are expected to be evaluated next."""

    task: Task
    scripts: Sequence[str]


class Lookahead:
    """A decision that is made once, by whoever asks first.

    An evaluator asks while it measures, on a thread of its own; the search waits for the evaluator meanwhile. The
    search asks before it learns the outcomes, so that the decision never depends on them, nor on who asked.

    Args:
        decide: Makes the decision; None where nothing is known of what follows.
    """

    def __init__(self, decide: Callable[[], Upcoming | None] = lambda: None) -> None:
        self._decide = decide
        self._made = False
        self._upcoming: Upcoming | None = None
        self._error: Exception | None = None

    def upcoming(self) -> Upcoming | None:
        """Return what follows; None where nothing is known of it, also after an error."""
        if not self._made:
            self._made = True
            try:
                self._upcoming = self._decide()
            except Exception as error:
                self._error = error
        return self._upcoming

    def decide(self) -> None:
        """Make the decision unless it was made.

        Raises:
            Exception: What the decision raised, for whoever asked first.
        """
        self.upcoming()
        if self._error is not None:
            raise self._error
