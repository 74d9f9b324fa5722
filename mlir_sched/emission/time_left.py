"""The time that is left for emission in a run by time: choices among finalists, and sessions that fit in."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from mlir_sched.program.closing import (
    AFTER_S,
    CHECK_CALLS,
    REFERENCE_CALLS,
    SHORT_SESSION_S,
    checking_s,
    loading_s,
    sampling_s,
)
from mlir_sched.runner import RunnerOptions

LEAST_REPORT_S, LONGEST_REPORT_S = 2.0, 10.0
"""Least and most seconds of sampling in the session that reports. The session takes what is left of the run's minutes
between the two: the interval becomes narrower."""
LONGER_REPORT_S = 1.8
"""Extra seconds of a report after a choice: it takes more samples than a report alone. Not used where the search has
shown the gain."""
FIRST_CHOICE_S, REPORT_ONLY_S = 4.0, 1.5
"""Seconds for a choice, and for a task without a choice, whose script is compiled and reported, before any were timed:
between the least and the most that networks took on one and two cores."""
RIVALS = 2
"""Scripts that a choice is expected to be between."""


@dataclass(frozen=True)
class TimeLeft:
    """The time that is left of a run.

    Attributes:
        until: The end of the run by ``time.monotonic()``; infinite for a run by trials.
    """

    until: float = math.inf

    def seconds(self) -> float:
        """Return the seconds that are left for sessions, which may be below 0."""
        return self.until - AFTER_S - time.monotonic()

    def affords(self, seconds: float) -> bool:
        """Say whether so many seconds are left for sessions."""
        return self.seconds() >= seconds

    def most_rivals(self, options: RunnerOptions, reference_s: float, rivals_s: Sequence[float]) -> int:
        """Return how many rivals a session can hold with the fewest pairs in half of the time; at least one.

        Args:
            reference_s: Seconds per call of the program that all are compared with.
            rivals_s: Seconds per call of the rivals, the fastest first.
        """
        pairs, half_s = options.racing.min_slow_pairs, max(0.0, self.seconds()) / 2
        costs_s = [pairs * (reference_s + call_s) + CHECK_CALLS * call_s for call_s in rivals_s]
        return max(1, sum(total <= half_s for total in accumulate(costs_s)))

    def deciding(self, options: RunnerOptions, calls_s: Sequence[float], default_s: float) -> RunnerOptions:
        """Return the options of the session that decides: as long as they say where the session that reports fits, too.

        Args:
            calls_s: Seconds per call of the programs in the session, that which all are compared with first.
            default_s: Seconds per call of the default program, which the other session compares with.
        """
        sampled = max(1, len(calls_s) - 1)
        checks_s = checking_s(calls_s) + checking_s([default_s] * 2) + loading_s(options, [default_s] * 2)
        return options.capped(max(0.0, self.seconds() - checks_s) / (sampled + 1))

    def reporting(self, options: RunnerOptions, call_s: float) -> RunnerOptions:
        """Return the options of the session that reports: as long as time is left.

        Args:
            call_s: Seconds per call of the program that the emitted one is compared with.
        """
        if self.until == math.inf:
            return options
        seconds = min(max(self.seconds() - checking_s([call_s] * 2), LEAST_REPORT_S), LONGEST_REPORT_S)
        longer = replace(options, racing=replace(options.racing, budget_s=max(options.racing.budget_s, seconds)))
        return longer.capped(seconds)


@dataclass(frozen=True)
class Pace:
    """How the time for choices goes. Samples that take more than the seconds above, as on devices, count as they are.

    Attributes:
        start: When the first choice began, by ``time.monotonic()``.
        seconds: Seconds for all major tasks.
        report_only_s: Seconds that each of these takes without a choice.
        first_choice_s: Seconds that the first choice is expected to take.
        longer_report_s: Seconds that a report after a choice takes beyond another one.
    """

    start: float
    seconds: float
    report_only_s: Sequence[float]
    first_choice_s: float
    longer_report_s: float

    @staticmethod
    def after(
        minor: int, start: float, seconds: float, major_s: Sequence[tuple[float, float]], options: RunnerOptions
    ) -> Pace:
        """Return the pace of the major tasks after so many others without a choice, which began at ``start``.

        Args:
            start, seconds: As the attributes, with the others included.
            major_s: Seconds per call of the untuned code and of the fastest code of every major task, the one that is
                chosen for first before the others.
        """
        now, short = time.monotonic(), options.capped(SHORT_SESSION_S)
        least_s = (now - start) / minor if minor else REPORT_ONLY_S
        report_only_s = [
            least_s
            + max(0.0, sampling_s(short, untuned_s, [best_s]) - SHORT_SESSION_S)
            + REFERENCE_CALLS * untuned_s
            + CHECK_CALLS * best_s
            for untuned_s, best_s in major_s
        ]
        first_choice_s, longer_report_s = FIRST_CHOICE_S, LONGER_REPORT_S
        for untuned_s, best_s in major_s[:1]:
            first_choice_s = max(first_choice_s, sampling_s(options, untuned_s, [best_s] * RIVALS))
            longer_s = sampling_s(options, untuned_s, [best_s]) - sampling_s(short, untuned_s, [best_s])
            longer_report_s = max(longer_report_s, longer_s)
        return Pace(now, seconds - (now - start), report_only_s, first_choice_s, longer_report_s)

    def has_time(self, decided: int, unclear: Collection[str]) -> bool:
        """Say whether one more task may have a choice, so that all scripts can be reported.

        Args:
            decided: Tasks that had a choice.
            unclear: Those whose report takes more time.
        """
        spent_s = time.monotonic() - self.start
        choice_s = spent_s / decided if decided else self.first_choice_s
        rest_s = self.longer_report_s * (len(unclear) + 1) + sum(self.report_only_s)
        return spent_s + choice_s + rest_s < self.seconds
