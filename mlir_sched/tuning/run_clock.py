"""The time that a run takes, over all the processes that worked on it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from mlir_sched.database import RecordStore


@dataclass
class RunClock:
    """A count of a run's seconds; a process that resumes the run goes on from the seconds of the last :meth:`save`.

    Attributes:
        store: Where the seconds are kept.
        key: Key of the clock in the store.
        start: When this process began with the run, by ``time.monotonic()``.
        earlier_s: Seconds that earlier processes spent on the run.
    """

    store: RecordStore
    key: str
    start: float
    earlier_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.earlier_s = self.store.seconds(self.key)

    def here_s(self) -> float:
        """Return the seconds that this process spent so far."""
        return time.monotonic() - self.start

    def spent_s(self) -> float:
        """Return the seconds that were spent so far, in this process and in earlier ones."""
        return self.earlier_s + self.here_s()

    def reached(self, event: str) -> float:
        """Return the seconds that were spent when a process of the run first asked for an event, which may be now."""
        return self.store.decide(f"{self.key}-{event}", self.spent_s)

    def save(self) -> None:
        """Keep the seconds spent so far."""
        self.store.save_seconds(self.key, self.spent_s())
