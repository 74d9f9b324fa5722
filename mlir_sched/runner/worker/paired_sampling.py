"""Pairs of samples of baseline and candidate, in random order, and whether the machine was quiet during each pair."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from mlir_sched.runner.protocol import Pair, SamplePairs

T = TypeVar("T")

SERVED_S = 8e-3
"""Seconds that a sample of the baseline takes per pair that it serves: a long sample serves several. Further pairs
sample only the program, which may in all take as long as the baseline's did: the two samples of each pair are then as
close in time as in a pair of equally slow programs."""


class PairClock(ABC, Generic[T]):
    """How one kind of device is timed; the type parameter is what the clock needs to run a program.

    Where only the samples themselves tell whether a device is quiet, there is nothing to wait for.
    """

    def await_quiet(self) -> None:
        """Wait for a good moment to take a pair, but not for long."""

    @abstractmethod
    def sample(self, program: T, calls: int) -> tuple[float, bool]:
        """Return the seconds per call over ``calls`` calls, and whether the program had the device for itself."""

    def was_quiet(self) -> bool:
        """Say whether the machine was quiet during the pair just taken."""
        return True


@dataclass
class _Kept:
    """A sample of the baseline.

    Attributes:
        seconds: Seconds per call.
        most: Most pairs that it serves.
        pairs: Pairs that it served.
        left_s: Seconds of a program's samples that it may still serve.
    """

    seconds: float
    most: int
    pairs: int
    left_s: float


class PairSampler(Generic[T]):
    """Takes pairs of samples of programs and their baseline, for one baseline after another."""

    def __init__(self, clock: PairClock[T]) -> None:
        self._clock = clock
        self._kept: _Kept | None = None

    def forget(self) -> None:
        """Drop the sample of the baseline that would serve further pairs: another baseline or a check comes next."""
        self._kept = None

    def pairs(self, baseline: T, own: T, request: SamplePairs) -> tuple[Pair, ...]:
        """Return ``request.pairs`` pairs; in each, chance decides which of the two programs runs first.

        An undisturbed sample of the baseline serves a pair per :data:`SERVED_S` that it takes, at least one and up to
        ``request.pairs_per_baseline`` in a row, also those of other programs.
        """
        own_first = np.random.default_rng(request.seed).integers(0, 2, request.pairs)
        return tuple(self._pair(baseline, own, request, bool(first)) for first in own_first)

    def _pair(self, baseline: T, own: T, request: SamplePairs, own_first: bool) -> Pair:
        clock = self._clock
        clock.await_quiet()
        kept = self._kept
        if kept is not None and kept.pairs < min(request.pairs_per_baseline, kept.most) and kept.left_s > 0:
            own_s, own_alone = clock.sample(own, request.calls)
            kept.pairs += 1
            kept.left_s -= own_s * request.calls
            return Pair(kept.seconds, own_s, own_alone and clock.was_quiet(), shared=True)
        if own_first:
            own_s, own_alone = clock.sample(own, request.calls)
            baseline_s, baseline_alone = clock.sample(baseline, request.baseline_calls)
        else:
            baseline_s, baseline_alone = clock.sample(baseline, request.baseline_calls)
            own_s, own_alone = clock.sample(own, request.calls)
        quiet = own_alone and baseline_alone and clock.was_quiet()
        sample_s = baseline_s * request.baseline_calls
        self._kept = _Kept(baseline_s, most=int(sample_s / SERVED_S), pairs=1, left_s=sample_s) if quiet else None
        return Pair(baseline_s, own_s, quiet)
