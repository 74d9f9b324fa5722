"""Samples of several contenders taken in turns, and what follows from them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mlir_sched.runner.statistics import Interval, median_interval, ratio_interval

FEWEST = 6
"""Quiet samples below which the disturbed ones count as well."""

SMALLEST_SHARE = 0.01
"""Least share of a call's time that is left as kernel time when the empty call's is taken off."""


@dataclass(frozen=True)
class Contender:
    """What is timed.

    Attributes:
        peer: Whose process runs it.
        way: Its number there; ``peer.EMPTY`` is the empty call.
        label: Its column; of the contenders of one column the fastest counts.
        detail: What sets it apart in its column.
    """

    peer: str
    way: int
    label: str
    detail: str = ""


@dataclass(frozen=True)
class Samples:
    """Samples of one contender, one per round.

    Attributes:
        contender: What was timed.
        calls_s: Seconds per call of every round.
        quiet: Whether the contender had its cores for itself in that round.
    """

    contender: Contender
    calls_s: tuple[float, ...]
    quiet: tuple[bool, ...]

    @property
    def kept_s(self) -> tuple[float, ...]:
        """The samples that count: the quiet ones, or all when these are too few."""
        kept = tuple(s for s, quiet in zip(self.calls_s, self.quiet, strict=True) if quiet)
        return kept if len(kept) >= FEWEST else self.calls_s

    @property
    def interval(self) -> Interval:
        """Median seconds per call with its 95 % interval."""
        return median_interval(self.kept_s)

    def less(self, overhead_s: float) -> Samples:
        """Return the samples without the time of an empty call."""
        calls_s = tuple(max(s - overhead_s, SMALLEST_SHARE * s) for s in self.calls_s)
        return Samples(self.contender, calls_s, self.quiet)


Sampler = Callable[[Contender], tuple[float, bool]]
"""Takes one sample: seconds per call, and whether nothing disturbed it."""


def interleave(
    contenders: Sequence[Contender],
    sample: Sampler,
    *,
    rounds: int,
    patience_s: float,
    rng: np.random.Generator,
) -> tuple[Samples, ...]:
    """Return the samples of all contenders; every round takes one of each, in an order left to chance.

    After ``patience_s`` no further round starts, but :data:`FEWEST` rounds there are if so many were asked for.
    """
    taken: Mapping[Contender, list[tuple[float, bool]]] = {contender: [] for contender in contenders}
    start = time.monotonic()
    for round_ in range(rounds):
        if round_ >= FEWEST and time.monotonic() - start > patience_s:
            break
        for index in rng.permutation(len(contenders)):
            taken[contenders[index]].append(sample(contenders[index]))
    return tuple(Samples(c, tuple(s for s, _ in pairs), tuple(q for _, q in pairs)) for c, pairs in taken.items())


def ratio(other: Samples, own: Samples) -> Interval:
    """Return the median of ``other / own`` over the rounds in which both were quiet; above 1 means own is faster."""
    pairs = list(zip(other.calls_s, own.calls_s, strict=True))
    quiet = [p for p, a, b in zip(pairs, other.quiet, own.quiet, strict=True) if a and b]
    chosen = quiet if len(quiet) >= FEWEST else pairs
    return ratio_interval([a for a, _ in chosen], [b for _, b in chosen])
