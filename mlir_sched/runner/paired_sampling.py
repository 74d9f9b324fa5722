"""Pairs of samples of baseline and candidate, in random order, each with a verdict on the moment."""

from __future__ import annotations

from typing import Protocol, TypeVar

import numpy as np

from mlir_sched.runner.protocol import Pair, SamplePairs

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Clock(Protocol[T_contra]):
    """How one kind of device is timed; the type parameter is what the clock needs to run a program."""

    def settle(self) -> None:
        """Wait for a good moment to take a pair, but not for long."""

    def sample(self, program: T_contra, calls: int) -> tuple[float, bool]:
        """Return the seconds per call over so many calls, and whether the program had the device for itself."""

    def was_quiet(self) -> bool:
        """Say whether the machine was quiet during the pair just taken."""


def sample_pairs(clock: Clock[T], baseline: T, own: T, request: SamplePairs) -> tuple[Pair, ...]:
    """Return ``request.pairs`` pairs; in each, chance decides which of the two programs runs first."""
    own_first = np.random.default_rng(request.seed).integers(0, 2, request.pairs)
    return tuple(_pair(clock, baseline, own, request, bool(first)) for first in own_first)


def _pair(clock: Clock[T], baseline: T, own: T, request: SamplePairs, own_first: bool) -> Pair:
    clock.settle()
    if own_first:
        own_s, own_alone = clock.sample(own, request.calls)
        baseline_s, baseline_alone = clock.sample(baseline, request.baseline_calls)
    else:
        baseline_s, baseline_alone = clock.sample(baseline, request.baseline_calls)
        own_s, own_alone = clock.sample(own, request.calls)
    return Pair(baseline_s, own_s, own_alone and baseline_alone and clock.was_quiet())
