"""What a running search tells: phases, events, and the progress of the whole run, which is put together from them.

All of this is plain data, for a bar, a log and a test alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from mlir_sched.tuning.tuning_run import TuningRun


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


@dataclass(frozen=True)
class SearchState:
    """What a search tells of one program so far.

    Attributes:
        name: Name of the search: that of the variant that it began with.
        tried: Candidates tried.
        best: Speed-up of the best candidate so far by dispatch name, at least 1. A dispatch is missing until its first
            round has ended, unless an earlier run found a candidate that is faster than its untuned code.
        failures: Failed candidates so far by class.
    """

    name: str
    tried: int
    best: Mapping[str, float]
    failures: Mapping[str, int]


class SearchEvents(Protocol):
    """The listener that is told what happens in a search; an exception that it raises ends the search."""

    def on_phase(self, phase: Phase, state: SearchState, dispatch: str = "") -> None:
        """Hear in which phase the run is now, how far a search is, and which dispatch it works on; called often."""

    def on_internal_error(self, text: str) -> None:
        """Hear the traceback of an internal error that cost a candidate or a dispatch; it may come more than once."""


@dataclass(frozen=True)
class Progress:
    """The state of a run.

    Attributes:
        stage: What happens now, for a person.
        trials: Candidates tried so far.
        total: Candidates to try, 0 when the budget is in minutes or not known yet.
        elapsed_s: Seconds since the start.
        left_s: Estimated seconds to the end of the search; None when unknown.
        best: Speed-up of the best candidate so far by dispatch name, of the dispatches that have candidates.
        failures: Failed candidates so far by class.
        note: What the user is to know at once, and is told once; empty for nothing.
    """

    stage: str
    trials: int = 0
    total: int = 0
    elapsed_s: float = 0.0
    left_s: float | None = None
    best: Mapping[str, float] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    note: str = ""


ProgressCallback: TypeAlias = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Ignore the progress."""
    del progress


STAGES = {
    Phase.VARIANTS: "compiling and timing the untuned program",
    Phase.UNTUNED: "measuring the untuned dispatches",
    Phase.SEARCH: "tuning",
    Phase.FINALISTS: "measuring the finalists",
    Phase.EMISSION: "emitting and measuring the program",
}
"""What a phase is called while it lasts."""
STAGES_WITHOUT_DEVICE = STAGES | {
    Phase.VARIANTS: "compiling the untuned program and estimating its time",
    Phase.UNTUNED: "estimating the untuned dispatches",
    Phase.FINALISTS: "choosing the finalists",
    Phase.EMISSION: "emitting and proving the program",
}
"""The same where nothing is run."""


@dataclass
class Monitor:
    """The listener to the events of all searches of a run; satisfies ``SearchEvents``.

    Attributes:
        progress: Is called with the state of the whole run.
        on_internal_error: Is called with the tracebacks of internal errors.
    """

    run: TuningRun
    phases: PhaseClock
    progress: ProgressCallback
    on_internal_error: Callable[[str], None]
    stages: Mapping[Phase, str] = field(default_factory=lambda: STAGES)
    _tried: dict[str, int] = field(default_factory=dict)

    def on_phase(self, phase: Phase, state: SearchState, dispatch: str = "") -> None:
        """Call ``progress`` with the state of a program and the number of candidates tried on all programs."""
        self.phases.enter(phase)
        stage = f"{self.stages[phase]} {dispatch}".rstrip()
        self._tried[state.name] = state.tried
        tried, budget, clock = sum(self._tried.values()), self.run.budget, self.run.clock
        here_s = clock.here_s()
        left_s = budget.left_s(tried=tried, here_s=here_s, now_s=clock.spent_s())
        self.progress(Progress(stage, tried, budget.trials or 0, here_s, left_s, state.best, state.failures))
