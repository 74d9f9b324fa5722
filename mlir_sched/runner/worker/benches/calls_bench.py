"""Checks programs on a HAL device in this process, and times them there by the host's clock around calls."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import iree.runtime as rt

from mlir_sched.runner import protocol
from mlir_sched.runner.protocol import LONG_CALL_S
from mlir_sched.runner.worker.benches.chained_bench import ChainedBench
from mlir_sched.runner.worker.device import Device, RemoteDevice
from mlir_sched.runner.worker.paired_sampling import PairClock
from mlir_sched.runner.worker.wall_clock import warm_call_s
from mlir_sched.targets.clock import CALLS

CHAINED_S = 1e-3
"""Seconds per call up to which a dispatch is timed with a chain, if it has one: of longer calls, submitting them and
waiting for their end is a small part."""
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


class DeviceCallClock(PairClock[DeviceCalls]):
    """The host's clock around calls on a device whose own times IREE does not record.

    A call on a device also takes its submission and the waiting for its end, which may take longer than a dispatch. A
    short dispatch is timed with a chain (``compiler/chain.py``) and single calls in turn: a call of ``n`` dispatches
    takes ``n - 1`` dispatches longer than a call of one, and the rest is the same in both. What is left is the
    resolution of this clock: the device does not begin a dispatch before the host has submitted it, so that a dispatch
    shorter than a launch looks as long as a launch.
    """

    def sample(self, program: DeviceCalls, calls: int) -> tuple[float, bool]:
        """Return seconds per call, and whether they are near the program's best.

        A call before the sample fills the caches, and wakes a device that lowered its clock while another ran.
        """
        (program.chain or program.single)(1)
        seconds = self.seconds(program, calls)
        program.best_s = min(program.best_s, seconds)
        return seconds, seconds <= DISTURBED * program.best_s

    def seconds(self, program: DeviceCalls, calls: int) -> float:
        """Return seconds per call: of the program, or of one dispatch of its chain.

        Args:
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


class CallsBench(ChainedBench[DeviceCalls]):
    """A device such as ``cuda``, open as long as the process lives."""

    def __init__(self, setup: protocol.CallsSetup) -> None:
        self._clock = DeviceCallClock()
        super().__init__(self._clock, CHAINED_S)
        self._device = RemoteDevice(rt.VmInstance(), setup.driver)

    def device(self) -> Device:
        """Return the device."""
        return self._device

    def rough_s(self, handle: int, sample_s: float) -> float:
        """Return rough seconds per call by the host's clock."""
        timed = self._callee(handle)
        first_s = run_s(timed.single, 1)
        return first_s if first_s >= LONG_CALL_S else self._clock.seconds(timed, max(1, math.ceil(sample_s / first_s)))

    def _callee_of(self, handle: int, longest_s: float) -> DeviceCalls:
        workspace, loaded = self._ready(), self._loaded[handle]
        single = workspace.runner_of(loaded)
        if loaded.has_chain and warm_call_s(single) <= longest_s:
            return DeviceCalls(single, workspace.chain_runner_of(loaded, CALLS.chain), CALLS.chain)
        return DeviceCalls(single)

    def _is_chained(self, callee: DeviceCalls) -> bool:
        return callee.chain is not None
