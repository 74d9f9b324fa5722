"""A fixed computation whose time is known when the machine is quiet: the thermometer of every timing.

A neighbour on the same core shows as wall time without CPU time; a neighbour on the other hardware thread of the
core, or a lower frequency, only shows as the same work taking longer.
"""

import os
import time
from collections import deque
from collections.abc import Sequence

from mlir_sched.runner.cores import CalibrationKernel

HISTORY = 512
"""Number of last measurements that give the quiet time: after these, a lasting change of frequency counts as normal."""


class Calibration:
    """The calibration kernel on some cores, with the time that it takes there when nothing disturbs it.

    Args:
        cores: Cores to check; the calling thread moves between them when there are several.
        tolerance: Relative excess over the quiet time that still counts as quiet, > 0.
    """

    def __init__(self, cores: Sequence[int], tolerance: float) -> None:
        self._cores = tuple(cores)
        self._tolerance = tolerance
        self._kernel = CalibrationKernel()
        self._history: deque[float] = deque(maxlen=HISTORY)
        for _ in range(64):
            self.kernel_s()
        self._history.clear()
        for _ in range(128):
            self.is_quiet()

    @property
    def quiet_s(self) -> float:
        """Seconds of the kernel on a quiet machine: the 5th percentile of the recent history."""
        ordered = sorted(self._history)
        return ordered[len(ordered) // 20]

    def kernel_s(self) -> float:
        """Return the seconds of one run of the kernel on the current core."""
        start = time.perf_counter_ns()
        self._kernel.run()
        return (time.perf_counter_ns() - start) * 1e-9

    def watch(self, core: int, seconds: float) -> list[float]:
        """Move to a core, run the kernel there for ``seconds`` (at least once), and return the seconds of every run."""
        os.sched_setaffinity(0, {core})
        end = time.perf_counter() + seconds
        times = [self.kernel_s()]
        while time.perf_counter() < end:
            times.append(self.kernel_s())
        return times

    def is_quiet(self) -> bool:
        """Measure every core and say whether all took their usual time; one slow run of two is forgiven."""
        if len(self._cores) == 1:
            return self._is_core_quiet()
        quiet = True
        for core in self._cores:
            os.sched_setaffinity(0, {core})
            quiet &= self._is_core_quiet()
        os.sched_setaffinity(0, self._cores)
        return quiet

    def _is_core_quiet(self) -> bool:
        for _ in range(2):
            seconds = self.kernel_s()
            self._history.append(seconds)
            if seconds <= self.quiet_s * (1 + self._tolerance):
                return True
        return False
