"""Timed pairs of baseline and candidate, each with a verdict on whether the machine was quiet."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mlir_sched.runner.calibration import Calibration
from mlir_sched.runner.protocol import Pair, SamplePairs

MAX_WALL_OVER_CPU = 1.03
"""A sample with more wall time per CPU time was interrupted by somebody else's work."""

WAKE_UP_NS = 10_000
"""What a worker thread that wakes up for a call waits for its core even on a quiet machine (6 us were seen)."""

WAIT_RUNS = 40
"""Calibration runs (some 50 us each) to wait for a quiet moment before a pair is taken all the same."""


class PairSampler:
    """Takes samples on the current process.

    Args:
        calibration: Consulted before and after every pair.
        threads: Threads the programs run on; with one, it is the calling thread.
    """

    def __init__(self, calibration: Calibration, *, threads: int) -> None:
        self._calibration = calibration
        self._threads = threads

    def sample(
        self, baseline: Callable[[int], None], own: Callable[[int], None], request: SamplePairs
    ) -> tuple[Pair, ...]:
        """Return ``request.pairs`` pairs; in each, chance decides which of the two programs runs first."""
        own_first = np.random.default_rng(request.seed).integers(0, 2, request.pairs)
        return tuple(self._pair(baseline, own, request, bool(first)) for first in own_first)

    def _pair(
        self, baseline: Callable[[int], None], own: Callable[[int], None], request: SamplePairs, own_first: bool
    ) -> Pair:
        self._wait_until_quiet()
        if own_first:
            own_s, own_alone = self._time(own, request.calls)
            baseline_s, baseline_alone = self._time(baseline, request.baseline_calls)
        else:
            baseline_s, baseline_alone = self._time(baseline, request.baseline_calls)
            own_s, own_alone = self._time(own, request.calls)
        return Pair(baseline_s, own_s, own_alone and baseline_alone and self._calibration.is_quiet())

    def _wait_until_quiet(self) -> None:
        for _ in range(WAIT_RUNS):
            if self._calibration.is_quiet():
                return

    def _time(self, run: Callable[[int], None], calls: int) -> tuple[float, bool]:
        """Return seconds per call, and whether the program had its cores for itself.

        On one thread an interrupted sample gives its CPU time: what the interruption took is not in it, only what
        it did to the caches. On several threads there is no such substitute.
        """
        if calls > 1:
            run(1)
        waited = 0 if self._threads == 1 else _run_delay_ns()
        cpu = time.thread_time_ns()
        start = time.perf_counter_ns()
        run(calls)
        wall_ns = time.perf_counter_ns() - start
        cpu_ns = time.thread_time_ns() - cpu
        if self._threads > 1:
            allowed_ns = self._threads * ((MAX_WALL_OVER_CPU - 1) * wall_ns + WAKE_UP_NS * calls)
            alone = _run_delay_ns() - waited <= allowed_ns
            return wall_ns * 1e-9 / calls, alone
        alone = wall_ns <= MAX_WALL_OVER_CPU * cpu_ns
        return (wall_ns if alone else cpu_ns) * 1e-9 / calls, alone


def _run_delay_ns() -> int:
    """Return how long the threads of this process have waited for a core so far; 0 where Linux does not tell."""
    total = 0
    for path in Path("/proc/self/task").glob("*/schedstat"):
        try:
            total += int(path.read_text().split()[1])
        except (OSError, IndexError, ValueError):
            continue
    return total
