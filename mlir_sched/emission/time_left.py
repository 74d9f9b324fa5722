"""The time that is left for emission in a run by time, and sessions that fit in."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from mlir_sched.program.closing import AFTER_S, checking_s
from mlir_sched.runner import RunnerOptions

LEAST_REPORT_S, LONGEST_REPORT_S = 2.0, 10.0
"""Least and most seconds of sampling in the session that reports. The session takes what is left of the run's minutes
between the two: the interval becomes narrower."""


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
            options: The options of the session.
            reference_s: Seconds per call of the program that all are compared with.
            rivals_s: Seconds per call of the rivals, the fastest first.
        """
        pairs, half_s = options.racing.min_slow_pairs, max(0.0, self.seconds()) / 2
        costs_s = [pairs * (reference_s + call_s) + checking_s([call_s]) for call_s in rivals_s]
        return max(1, sum(total <= half_s for total in accumulate(costs_s)))

    def deciding(self, options: RunnerOptions, calls_s: Sequence[float], default_s: float) -> RunnerOptions:
        """Return the options of the session that decides: as long as they say where the session that reports fits, too.

        Args:
            options: The options of a session without a limit.
            calls_s: Seconds per call of the programs in the session, that which all are compared with first.
            default_s: Seconds per call of the default program, which the other session compares with.
        """
        sampled = max(1, len(calls_s) - 1)
        checks_s = checking_s(calls_s) + checking_s([default_s] * 2)
        return options.within(max(0.0, self.seconds() - checks_s) / (sampled + 1))

    def reporting(self, options: RunnerOptions, call_s: float) -> RunnerOptions:
        """Return the options of the session that reports: as long as time is left.

        Args:
            options: The options of a session without a limit.
            call_s: Seconds per call of the program that the emitted one is compared with.
        """
        if self.until == math.inf:
            return options
        seconds = min(max(self.seconds() - checking_s([call_s] * 2), LEAST_REPORT_S), LONGEST_REPORT_S)
        longer = replace(options, racing=replace(options.racing, budget_s=max(options.racing.budget_s, seconds)))
        return longer.within(seconds)
