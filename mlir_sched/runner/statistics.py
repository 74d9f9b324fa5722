"""Robust summaries of run times: medians, their distribution-free intervals, and whether a ranking is decided.

Run times are skewed and have outliers, so nothing here assumes a distribution: every interval is made of order
statistics, whose coverage follows from the binomial distribution alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

CONFIDENCE = 0.95
"""Coverage asked of every interval."""

FEWEST_VALUES = 6
"""Fewest values whose whole range covers the median with that confidence."""


@dataclass(frozen=True)
class Interval:
    """A median with its confidence interval, in the unit of the values.

    Attributes:
        low, high: Order statistics that hold the true median with probability ``coverage``.
        coverage: At least the confidence asked for, or less when there were too few values (95 % needs 6).
    """

    median: float
    low: float
    high: float
    coverage: float
    count: int

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"

    def relative_width(self) -> float:
        """Return the interval's width as a fraction of the median."""
        return (self.high - self.low) / self.median


@lru_cache(maxsize=4096)
def median_ranks(count: int) -> tuple[int, float]:
    """Return the rank ``r`` (from 0) whose interval ``[r, count - 1 - r]`` covers the median, and its coverage.

    The largest such ``r`` is taken. When even the whole range covers the median with less than :data:`CONFIDENCE`, the
    rank is 0 and the coverage that of the range, ``1 - 2^(1 - count)``.

    Raises:
        ValueError: ``count`` is below 1.

    Source: Hahn & Meeker, "Statistical Intervals" (1991), section 5.2: distribution-free intervals for a quantile.
    """
    if count < 1:
        raise ValueError(f"a median needs at least one value, got {count}")
    below = 1  # number of the 2^count outcomes in which fewer than rank + 1 values lie below the median
    rank, whole = 0, 2**count
    coverage = 1 - 2 * below / whole
    while 2 * (rank + 1) < count:
        below += math.comb(count, rank + 1)
        if 1 - 2 * below / whole < CONFIDENCE:
            break
        rank, coverage = rank + 1, 1 - 2 * below / whole
    return rank, coverage


def median_interval(values: Sequence[float]) -> Interval:
    """Return the median of ``values`` and its distribution-free confidence interval.

    Raises:
        ValueError: There are no values.
    """
    rank, coverage = median_ranks(len(values))
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    return Interval(
        median=float(np.median(ordered)),
        low=float(ordered[rank]),
        high=float(ordered[-1 - rank]),
        coverage=coverage,
        count=len(values),
    )


def ratio_interval(baseline_s: Sequence[float], own_s: Sequence[float]) -> Interval:
    """Return the median of ``baseline_s[i] / own_s[i]`` over paired samples; above 1 is faster than the baseline.

    A pair is measured back to back, so a slowdown of both samples (frequency, a neighbour) cancels in its ratio.

    Args:
        baseline_s: Seconds per call of the baseline, one per pair, > 0.
        own_s: Seconds per call of the candidate in the same pairs, > 0.

    Raises:
        ValueError: There are no pairs, or the lengths differ.
    """
    if len(baseline_s) != len(own_s):
        raise ValueError(f"paired samples must be equally many, got {len(baseline_s)} and {len(own_s)}")
    ratios = np.asarray(baseline_s, dtype=np.float64) / np.asarray(own_s, dtype=np.float64)
    return median_interval(ratios.tolist())


def is_decided(first: Interval, second: Interval) -> bool:
    """Say whether two medians are ranked: both intervals reach the confidence and they do not overlap.

    Disjoint intervals are a stricter test than one on the difference of the medians, so ties are not called
    rankings at a higher rate than ``1 - CONFIDENCE``.

    Source: Schenker & Gentleman, "On Judging the Significance of Differences by Examining the Overlap Between
    Confidence Intervals", The American Statistician 55 (2001).
    """
    reached = min(first.coverage, second.coverage) >= CONFIDENCE
    return reached and (first.high < second.low or second.high < first.low)


def likely_spread(spreads: Sequence[float]) -> float:
    """Return the factor by which two values are seldom both off from their median to the same side.

    Args:
        spreads: The larger over the smaller of two values each. All values are independent and, relative to their
            medians, of one distribution. One of the spreads may be that of the two values that are judged.

    Returns:
        One of the widest spreads; infinity where there are too few, fewer than six.

    Where one value is off by more than ``x`` to that side with probability ``p``, two values are at least ``x`` apart
    with probability ``p`` or more. So ``p`` beyond the ``j``-th widest of ``k`` spreads is at most the ``j``-th
    smallest of ``k`` uniform variables, whose mean square is ``j (j + 1) / ((k + 1) (k + 2))``: the chance that both
    values are off by more. The largest ``j`` is taken for which it is at most ``1 - CONFIDENCE``.

    Source: David & Nagaraja, "Order Statistics" (2003), section 2.2: uniform order statistics have Beta distributions.
    """
    others = max(0, len(spreads) - 1)
    allowed = (1 - CONFIDENCE) * (others + 1) * (others + 2)
    rank = int((math.sqrt(1 + 4 * allowed) - 1) / 2)
    return sorted(spreads)[-rank] if rank else math.inf
