"""Pairs of samples of baseline and candidate, in random order, and whether the machine was quiet during each pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from mlir_sched.runner.protocol import Pair, SamplePairs

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

SHARED_CALL_S = 0.1
"""Seconds per call from which one sample of the baseline serves several pairs. Further pairs sample only the program,
which may in all take as long as the baseline's sample did: the two samples of each pair are then about as close in time
as in a pair of equally slow programs."""


class Clock(Protocol[T_contra]):
    """How one kind of device is timed; the type parameter is what the clock needs to run a program."""

    def settle(self) -> None:
        """Wait for a good moment to take a pair, but not for long."""

    def sample(self, program: T_contra, calls: int) -> tuple[float, bool]:
        """Return the seconds per call over ``calls`` calls, and whether the program had the device for itself."""

    def was_quiet(self) -> bool:
        """Say whether the machine was quiet during the pair just taken."""


@dataclass
class _Kept:
    """A long sample of the baseline, the pairs it served, and the seconds of samples that it may still serve."""

    seconds: float
    pairs: int
    left_s: float


class PairSampler(Generic[T]):
    """Takes pairs of samples of programs and their baseline, for one baseline after another.

    Args:
        clock: The clock that times the programs.
    """

    def __init__(self, clock: Clock[T]) -> None:
        self._clock = clock
        self._kept: _Kept | None = None

    def forget(self) -> None:
        """Drop what is known of the baseline, because another one follows."""
        self._kept = None

    def pairs(self, baseline: T, own: T, request: SamplePairs) -> tuple[Pair, ...]:
        """Return ``request.pairs`` pairs; in each, chance decides which of the two programs runs first.

        An undisturbed sample of a baseline of :data:`SHARED_CALL_S` or more serves up to ``request.pairs_per_baseline``
        pairs in a row, also those of other programs.
        """
        own_first = np.random.default_rng(request.seed).integers(0, 2, request.pairs)
        return tuple(self._pair(baseline, own, request, bool(first)) for first in own_first)

    def _pair(self, baseline: T, own: T, request: SamplePairs, own_first: bool) -> Pair:
        clock = self._clock
        clock.settle()
        kept = self._kept
        if kept is not None and kept.pairs < request.pairs_per_baseline and kept.left_s > 0:
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
        keep = quiet and baseline_s >= SHARED_CALL_S
        self._kept = _Kept(baseline_s, pairs=1, left_s=baseline_s * request.baseline_calls) if keep else None
        return Pair(baseline_s, own_s, quiet)
