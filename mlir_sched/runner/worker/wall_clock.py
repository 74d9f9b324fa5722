"""Times calls in this process by its clocks, and detects disturbances."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mlir_sched.runner.protocol import LONG_CALL_S
from mlir_sched.runner.worker.calibration import Calibration
from mlir_sched.runner.worker.paired_sampling import PairClock

MAX_WALL_OVER_CPU = 1.03
"""A sample with more wall time per CPU time was interrupted by other work."""

WAKE_UP_NS = 10_000
"""Nanoseconds that a worker thread woken for a call may wait for its core on a quiet machine (6 us were seen)."""

WAIT_S = 3e-3
"""Seconds to wait for a quiet moment before a pair is taken all the same: as long as a short pair takes. A look at one
core takes 70 us, at two cores, between which the thread moves, 600 us."""


@dataclass(frozen=True)
class Callee:
    """A program to be timed.

    Attributes:
        run: Function that calls the program a given number of times.
        threads: Threads that it runs on; with one, it is the calling thread.
        dispatches: Dispatches of a task that one run makes; what is timed is one of them.
        restart: Resets the state that its calls change; None for a program whose calls are alike.
        most_calls: Most calls between two resets.
    """

    run: Callable[[int], None]
    threads: int = 1
    dispatches: int = 1
    restart: Callable[[], None] | None = None
    most_calls: int = 0


class WallClock(PairClock[Callee]):
    """The clock of the CPU's cores.

    Args:
        calibration: Consulted before and after every pair.
    """

    def __init__(self, calibration: Calibration) -> None:
        self._calibration = calibration

    def await_quiet(self) -> None:
        """Wait until the calibration kernel takes its usual time."""
        end = time.perf_counter() + WAIT_S
        while not self._calibration.is_quiet() and time.perf_counter() < end:
            pass

    def sample(self, program: Callee, calls: int) -> tuple[float, bool]:
        """Return seconds per call, and whether the program had its cores for itself.

        A call before the sample fills the caches, which hold another program's weights: users call one program many
        times. Where a sample is a single call, a first call of :data:`LONG_CALL_S` or more is the sample.

        On one thread the CPU time of an interrupted sample is returned: it does not contain the interruption itself,
        only its effect on the caches. On several threads there is no such substitute. Every sample of a program that
        changes its state begins in the same state, and has as many calls as that allows.
        """
        if program.restart is not None:
            program.restart()
            calls = min(calls, program.most_calls - 1)
        first = self._sample(program, 1)
        if calls == 1 and first[0] >= LONG_CALL_S:
            return first
        return self._sample(program, calls)

    def was_quiet(self) -> bool:
        """Say whether the calibration kernel takes its usual time."""
        return self._calibration.is_quiet()

    def _sample(self, program: Callee, calls: int) -> tuple[float, bool]:
        """Time at least so many calls."""
        runs = -(-calls // program.dispatches)
        seconds, alone = self._timed_runs(program, runs)
        return seconds / program.dispatches, alone

    def _timed_runs(self, program: Callee, calls: int) -> tuple[float, bool]:
        waited = 0 if program.threads == 1 else workers_delay_ns()
        cpu = time.thread_time_ns()
        start = time.perf_counter_ns()
        program.run(calls)
        wall_ns = time.perf_counter_ns() - start
        cpu_ns = time.thread_time_ns() - cpu
        if program.threads > 1:
            allowed_ns = program.threads * ((MAX_WALL_OVER_CPU - 1) * wall_ns + WAKE_UP_NS * calls)
            alone = workers_delay_ns() - waited <= allowed_ns
            return wall_ns * 1e-9 / calls, alone
        alone = wall_ns <= MAX_WALL_OVER_CPU * cpu_ns
        return (wall_ns if alone else cpu_ns) * 1e-9 / calls, alone


def call_seconds(run: Callable[[int], None], sample_s: float) -> float:
    """Return rough seconds per call of a warm program: the best of the samples that fit three times ``sample_s``.

    One call is enough where it takes :data:`LONG_CALL_S` or more.
    """
    start = time.perf_counter()
    run(1)
    first = time.perf_counter() - start
    if first >= LONG_CALL_S:
        return first
    calls, best = 1, float("inf")
    start = time.perf_counter()
    while True:
        before = time.perf_counter()
        run(calls)
        now = time.perf_counter()
        best = min(best, (now - before) / calls)
        if now - start >= 3 * sample_s:
            return best
        if now - before < sample_s / 2:
            calls *= 4


def longest_chained_s(limit_s: float, *, baseline_s: float, baseline_chained: bool) -> float:
    """Return the seconds per call up to which a candidate is timed with its chain.

    The same code must not be timed in two ways, as the baseline and as a candidate: one of the two would seem faster.
    Only a program that is twice as fast as the baseline may be timed in another way.

    Args:
        limit_s: The longest calls of a baseline that is timed with its chain.
        baseline_chained: Whether the baseline is timed with its chain.
    """
    return 2 * limit_s if baseline_chained else min(limit_s, baseline_s / 2)


def warm_call_s(run: Callable[[int], None]) -> float:
    """Return the seconds of the shorter of a program's next two calls."""
    best = math.inf
    for _ in range(2):
        start = time.perf_counter()
        run(1)
        best = min(best, time.perf_counter() - start)
    return best


def workers_delay_ns() -> int:
    """Return how long the other threads of this process have waited for a core so far; 0 where Linux does not tell.

    The calling thread does not count: it yields to them (:func:`.spinning_threads.yield_to_workers`).
    """
    total, own = 0, str(threading.get_native_id())
    for path in Path("/proc/self/task").glob("*/schedstat"):
        try:
            total += 0 if path.parent.name == own else int(path.read_text().split()[1])
        except (OSError, IndexError, ValueError):
            continue
    return total
