"""The progress of a run, put together from the events of its searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mlir_sched.tuning.events import ProgramState
from mlir_sched.tuning.phases import Phase, PhaseClock
from mlir_sched.tuning.progress import Progress, ProgressCallback
from mlir_sched.tuning.tuning_run import TuningRun

STAGES = {
    Phase.VARIANTS: "compiling and timing the untuned program",
    Phase.UNTUNED: "measuring the untuned dispatches",
    Phase.SEARCH: "tuning",
    Phase.FINALISTS: "measuring the finalists",
    Phase.EMISSION: "emitting and measuring the program",
}
"""What a phase is called while it lasts."""
STAGES_WITHOUT_DEVICE = STAGES | {
    Phase.UNTUNED: "estimating the untuned dispatches",
    Phase.EMISSION: "emitting and proving the program",
}
"""The same where nothing is run."""


@dataclass
class Monitor:
    """The listener to the events of all searches of a run; satisfies ``SearchEvents``.

    Attributes:
        run: The run.
        phases: Counts the seconds of each phase.
        progress: Is called with the state of the whole run.
        on_internal_error: Is called with the tracebacks of internal errors.
        stages: What each phase is called.
    """

    run: TuningRun
    phases: PhaseClock
    progress: ProgressCallback
    on_internal_error: Callable[[str], None]
    stages: Mapping[Phase, str] = field(default_factory=lambda: STAGES)
    _tried: dict[str, int] = field(default_factory=dict)

    def on_phase(self, phase: Phase, state: ProgramState, dispatch: str = "") -> None:
        """Call ``progress`` with the state of a program and the number of candidates tried on all programs."""
        self.phases.enter(phase)
        stage = f"{self.stages[phase]} {dispatch}".rstrip()
        self._tried[state.name] = state.tried
        tried, budget, clock = sum(self._tried.values()), self.run.budget, self.run.clock
        here_s = clock.here_s()
        left_s = budget.left_s(tried=tried, here_s=here_s, now_s=clock.spent_s())
        self.progress(Progress(stage, tried, budget.trials or 0, here_s, left_s, state.best, state.failures))
