"""Whether the time for the finalists holds one more choice among the best scripts of a dispatch."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mlir_sched.program.closing import BRIEF_S, CHECK_CALLS, sampling_s
from mlir_sched.runner import RunnerOptions

REPORTING_S = 1.8
"""Seconds that the report on a chosen script takes beyond one on a script that was taken without a choice, as more
samples are taken; not in a run by time where the search leaves no doubt that the script gains. Source: ResNet-50 on two
cores of an Emerald Rapids, 2.5 s and 0.7 s."""
FIRST_CHOICE_S, TAKING_S = 4.0, 1.5
"""Seconds for a choice, and for a task without a choice, whose script is compiled and reported, before any were timed.
Source: a T5 encoder on a core of a Zen 4, 7 s and 1 s; ResNet-50, 0.7 s for the second."""
RIVALS = 2
"""Scripts that a choice is expected to be between."""


@dataclass(frozen=True)
class Pace:
    """How the time for choices goes. Samples that take more than the seconds above, as on devices, count as they are.

    Attributes:
        start: When the first choice began, by ``time.monotonic()``.
        seconds: Seconds for all heavy tasks.
        taking_s: Seconds that each of these takes without a choice.
        first_choice_s: Seconds that the first choice is expected to take.
        reporting_s: Seconds that a report after a choice takes beyond another one.
    """

    start: float
    seconds: float
    taking_s: Sequence[float]
    first_choice_s: float
    reporting_s: float

    @staticmethod
    def after(
        light: int, start: float, seconds: float, heavy_s: Sequence[tuple[float, float]], options: RunnerOptions
    ) -> Pace:
        """Return the pace of the heavy tasks after so many others without a choice, which began at ``start``.

        Args:
            light: How many others.
            start, seconds: As the attributes, with the others included.
            heavy_s: Seconds per call of the untuned code and of the fastest code of every heavy task, the one that is
                chosen for first before the others.
            options: The options of the sessions.
        """
        now, brief = time.monotonic(), options.within(BRIEF_S)
        least_s = (now - start) / light if light else TAKING_S
        taking_s = [
            least_s + max(0.0, sampling_s(brief, untuned_s, [best_s]) - BRIEF_S) + CHECK_CALLS * untuned_s
            for untuned_s, best_s in heavy_s
        ]
        first_choice_s, reporting_s = FIRST_CHOICE_S, REPORTING_S
        for untuned_s, best_s in heavy_s[:1]:
            first_choice_s = max(first_choice_s, sampling_s(options, untuned_s, [best_s] * RIVALS))
            longer_s = sampling_s(options, untuned_s, [best_s]) - sampling_s(brief, untuned_s, [best_s])
            reporting_s = max(reporting_s, longer_s)
        return Pace(now, seconds - (now - start), taking_s, first_choice_s, reporting_s)

    def has_time(self, decided: int, doubtful: Collection[str]) -> bool:
        """Say whether one more task may have a choice, so that all scripts can be reported.

        Args:
            decided: Tasks that had a choice.
            doubtful: Those whose report takes more time.
        """
        spent_s = time.monotonic() - self.start
        choice_s = spent_s / decided if decided else self.first_choice_s
        rest_s = self.reporting_s * (len(doubtful) + 1) + sum(self.taking_s)
        return spent_s + choice_s + rest_s < self.seconds
