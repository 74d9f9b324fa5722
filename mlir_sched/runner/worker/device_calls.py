"""Times programs on a device by the host's clock around calls, where IREE does not record the device's own times.

A call on a device also takes its submission and the waiting for its end, which may take longer than a dispatch. A short
dispatch is timed with a chain (``compiler/chain.py``) and single calls in turn: a call of ``n`` dispatches takes
``n - 1`` dispatches longer than a call of one, and the rest is the same in both. What is left is the resolution of this
clock: the device does not begin a dispatch before the host has submitted it, so that a dispatch shorter than a launch
looks as long as a launch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

DISTURBED = 1.25
"""A sample beyond this factor of the program's best time counts as disturbed: by the device's clock, or by other work
on the device or the host."""


@dataclass(eq=False)
class DeviceCalls:
    """How a program on a device is called to be timed.

    Attributes:
        single: Function that calls the program a given number of times.
        chain: Function that calls its chain a given number of times; None for a program that is timed without.
        length: Dispatches of the chain.
        best_s: Best seconds per call so far.
    """

    single: Callable[[int], None]
    chain: Callable[[int], None] | None = None
    length: int = 1
    best_s: float = math.inf


class DeviceCallClock:
    """The host's clock around calls on a device."""

    def settle(self) -> None:
        """Do nothing: only the samples themselves tell whether a device is quiet."""

    def sample(self, program: DeviceCalls, calls: int) -> tuple[float, bool]:
        """Return seconds per call, and whether they are near the program's best.

        A call before the sample fills the caches, and wakes a device that lowered its clock while another ran.
        """
        (program.chain or program.single)(1)
        seconds = self.seconds(program, calls)
        program.best_s = min(program.best_s, seconds)
        return seconds, seconds <= DISTURBED * program.best_s

    def was_quiet(self) -> bool:
        """Return True: only the samples themselves tell whether a device is quiet."""
        return True

    def seconds(self, program: DeviceCalls, calls: int) -> float:
        """Return seconds per call: of the program, or of one dispatch of its chain.

        Args:
            program: The program.
            calls: About how many dispatches are timed, >= 1.
        """
        if program.chain is None:
            return run_s(program.single, calls)
        runs = max(1, round(calls / program.length))
        chain_s, single_s = run_s(program.chain, runs), run_s(program.single, runs)
        if chain_s <= single_s:  # a single call was disturbed
            return chain_s / program.length
        return (chain_s - single_s) / (program.length - 1)


def run_s(run: Callable[[int], None], calls: int) -> float:
    """Return the seconds of one of ``calls`` calls."""
    start = time.perf_counter()
    run(calls)
    return (time.perf_counter() - start) / calls
