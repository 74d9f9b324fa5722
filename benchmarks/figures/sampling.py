"""Samples of several ways taken in turns, and the kernel times and ratios that follow from them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mlir_sched.runner.statistics import Interval, median_interval, ratio_interval

FEWEST = 6
"""Number of quiet samples below which disturbed samples count as well."""

RESOLVED = 0.1
"""Largest relative uncertainty with which a kernel time counts as resolved."""

NEGLIGIBLE = 0.1
"""Largest share of an empty call in a call with which subtracting the empty call adds negligible uncertainty."""


@dataclass(frozen=True)
class TimedWay:
    """A way or an empty call of a peer that is timed.

    Attributes:
        peer: Name of the peer whose process runs the way.
        way: Number of the way in that process.
        label: The way's column; of the ways of one column the fastest counts. The label of an empty call
            is the column that it stands for, or empty when it stands for all other columns of the peer.
        detail: What distinguishes the way from the others of its column.
        empty: Whether the way is an empty call: one element plus one element.
    """

    peer: str
    way: int
    label: str
    detail: str = ""
    empty: bool = False


@dataclass(frozen=True)
class Samples:
    """Samples of one way, one per round.

    Attributes:
        timed: The way that was timed.
        calls_s: Seconds per call of every round.
        quiet: Whether the way had its cores to itself, for every round.
    """

    timed: TimedWay
    calls_s: tuple[float, ...]
    quiet: tuple[bool, ...]

    @property
    def kept_s(self) -> tuple[float, ...]:
        """The samples that count: the quiet samples, or all when fewer than :data:`FEWEST` are quiet."""
        kept = tuple(s for s, quiet in zip(self.calls_s, self.quiet, strict=True) if quiet)
        return kept if len(kept) >= FEWEST else self.calls_s

    @property
    def interval(self) -> Interval:
        """Median seconds per call with its 95 % interval."""
        return median_interval(self.kept_s)


class Unresolved(Exception):  # noqa: N818 - it is an answer, not an error
    """A kernel is too short to be told from its framework's empty call; the message holds both times."""


def kernel_time(call: Samples, empty: Samples) -> Samples:
    """Return the samples of a call less the median of the framework's empty call.

    Raises:
        Unresolved: The empty call takes more than a tenth of the call's time (:data:`NEGLIGIBLE`), and either the half
            widths of the two 95 % intervals add up to more than a tenth of the difference (:data:`RESOLVED`) or some
            sample of the call is not longer than the median empty call.
    """
    whole, overhead = call.interval, empty.interval
    if overhead.median > NEGLIGIBLE * whole.median:
        uncertainty_s = (whole.high - whole.low + overhead.high - overhead.low) / 2
        if uncertainty_s > RESOLVED * (whole.median - overhead.median) or min(call.calls_s) <= overhead.median:
            raise Unresolved(f"a call takes {_microseconds(whole)}, an empty one {_microseconds(overhead)}")
    return Samples(call.timed, tuple(s - overhead.median for s in call.calls_s), call.quiet)


Sampler = Callable[[TimedWay], tuple[float, bool]]
"""Takes one sample: seconds per call, and whether nothing disturbed it."""


def interleave(
    timed_ways: Sequence[TimedWay], sample: Sampler, *, rounds: int, patience_s: float, rng: np.random.Generator
) -> tuple[Samples, ...]:
    """Return the samples of all ways; every round takes one sample of each, in random order.

    After ``patience_s`` no further round starts, except that the first :data:`FEWEST` of the ``rounds`` always run.
    """
    taken: Mapping[TimedWay, list[tuple[float, bool]]] = {timed: [] for timed in timed_ways}
    start = time.monotonic()
    for round_ in range(rounds):
        if round_ >= FEWEST and time.monotonic() - start > patience_s:
            break
        for index in rng.permutation(len(timed_ways)):
            taken[timed_ways[index]].append(sample(timed_ways[index]))
    return tuple(Samples(c, tuple(s for s, _ in pairs), tuple(q for _, q in pairs)) for c, pairs in taken.items())


def ratio(other: Samples, own: Samples) -> Interval:
    """Return the median of ``other / own`` with its interval; above 1 means that ``own`` is faster.

    Only rounds in which both were quiet count; all rounds count if fewer than :data:`FEWEST` were quiet.
    """
    pairs = list(zip(other.calls_s, own.calls_s, strict=True))
    quiet = [p for p, a, b in zip(pairs, other.quiet, own.quiet, strict=True) if a and b]
    chosen = quiet if len(quiet) >= FEWEST else pairs
    return ratio_interval([a for a, _ in chosen], [b for _, b in chosen])


def _microseconds(interval: Interval) -> str:
    low, median, high = (f"{seconds * 1e6:.3g}" for seconds in (interval.low, interval.median, interval.high))
    return f"{median} us ({low} to {high})"
