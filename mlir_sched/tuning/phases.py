"""The phases of a run, and the seconds that each takes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import StrEnum


class Phase(StrEnum):
    """What a run does, in the order in which it begins to."""

    VARIANTS = "variants"
    """Program variants are compiled, checked and timed without scripts."""
    UNTUNED = "untuned dispatches"
    """The untuned code of dispatches is measured, which candidates are compared with."""
    SEARCH = "search"
    """Candidates are chosen, compiled and measured."""
    FINALISTS = "finalists"
    """The best candidates are measured once more."""
    EMISSION = "emission"
    """The library is put together, proven and measured as a program."""


@dataclass
class PhaseClock:
    """A count of the seconds that this process spends in each phase; the first one begins at once.

    Attributes:
        start: When the first phase began, by ``time.monotonic()``.
    """

    start: float
    _seconds: dict[Phase, float] = field(default_factory=dict)
    _phase: Phase = Phase.VARIANTS

    def enter(self, phase: Phase) -> None:
        """Count the seconds from now on for a phase."""
        now = time.monotonic()
        self._seconds[self._phase] = self._seconds.get(self._phase, 0.0) + now - self.start
        self.start, self._phase = now, phase

    def seconds(self) -> dict[str, float]:
        """Return the seconds so far by phase, in the order of the phases; phases without any are left out."""
        self.enter(self._phase)
        return {str(phase): self._seconds[phase] for phase in Phase if phase in self._seconds}
