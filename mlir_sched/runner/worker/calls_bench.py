"""Checks programs on a HAL device in this process, and times them there by the host's clock around calls."""

from __future__ import annotations

import math

import iree.runtime as rt

from mlir_sched.compiler.chain import DEVICE_LENGTH
from mlir_sched.runner import protocol
from mlir_sched.runner.program import Program
from mlir_sched.runner.protocol import BASELINE, LONG_CALL_S
from mlir_sched.runner.worker.bench import Bench
from mlir_sched.runner.worker.device import Device, RemoteDevice
from mlir_sched.runner.worker.device_calls import DeviceCallClock, DeviceCalls, run_s
from mlir_sched.runner.worker.paired_sampling import PairSampler
from mlir_sched.runner.worker.wall_clock import longest_chained_s, warm_call_s

CHAINED_S = 1e-3
"""Seconds per call up to which a dispatch is timed with a chain, if it has one: of longer calls, submitting them and
waiting for their end is a small part."""


class CallsBench(Bench):
    """A device such as ``cuda``, open as long as the process lives."""

    def __init__(self, setup: protocol.CallsSetup) -> None:
        super().__init__()
        self._device = RemoteDevice(rt.VmInstance(), setup.driver)
        self._clock = DeviceCallClock()
        self._sampler = PairSampler(self._clock)
        self._timed: dict[int, DeviceCalls] = {}

    def device(self) -> Device:
        """Return the device."""
        return self._device

    def load(self, handle: int, program: Program) -> None:
        """Load a program under a handle."""
        self._timed.pop(handle, None)
        super().load(handle, program)

    def drop(self, handle: int) -> None:
        """Release a program."""
        self._timed.pop(handle, None)
        super().drop(handle)

    def rough_s(self, handle: int, sample_s: float) -> float:
        """Return rough seconds per call by the host's clock."""
        timed = self._calls_of(handle)
        first_s = run_s(timed.single, 1)
        return first_s if first_s >= LONG_CALL_S else self._clock.seconds(timed, max(1, math.ceil(sample_s / first_s)))

    def pairs(self, request: protocol.SamplePairs) -> tuple[protocol.Pair, ...]:
        """Time a program and the baseline in turns."""
        return self._sampler.pairs(self._calls_of(BASELINE), self._calls_of(request.handle), request)

    def _calls_of(self, handle: int) -> DeviceCalls:
        """Return how a program is called to be timed: with its chain, if it has one and its calls are short."""
        if handle not in self._timed:
            workspace, loaded = self._ready(), self._loaded[handle]
            single = workspace.runner_of(loaded)
            if loaded.has_chain and warm_call_s(single) <= self._chained_s(handle):
                chain = workspace.chain_runner_of(loaded, DEVICE_LENGTH)
                self._timed[handle] = DeviceCalls(single, chain, DEVICE_LENGTH)
            else:
                self._timed[handle] = DeviceCalls(single)
        return self._timed[handle]

    def _chained_s(self, handle: int) -> float:
        """Return the seconds per call up to which a program is timed with its chain."""
        if handle == BASELINE:
            return CHAINED_S
        chained = self._calls_of(BASELINE).chain is not None
        return longest_chained_s(CHAINED_S, baseline_s=self._ready().call_s, baseline_chained=chained)

    def _forget(self) -> None:
        super()._forget()
        self._timed.clear()
        self._sampler.forget()
