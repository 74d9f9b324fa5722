"""Checks programs on a HAL device in this process, and times them there by the host's clock around calls."""

from __future__ import annotations

import math

import iree.runtime as rt

from mlir_sched.runner import protocol
from mlir_sched.runner.protocol import LONG_CALL_S
from mlir_sched.runner.worker.benches.chained_bench import ChainedBench
from mlir_sched.runner.worker.device import Device, RemoteDevice
from mlir_sched.runner.worker.device_calls import DeviceCallClock, DeviceCalls, run_s
from mlir_sched.runner.worker.wall_clock import warm_call_s
from mlir_sched.targets.clock import CALLS

CHAINED_S = 1e-3
"""Seconds per call up to which a dispatch is timed with a chain, if it has one: of longer calls, submitting them and
waiting for their end is a small part."""


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
