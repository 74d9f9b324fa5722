"""Checks and times programs on the CPU, in this process."""

from __future__ import annotations

import os
from collections.abc import Callable

import iree.runtime as rt

from mlir_sched.runner import protocol
from mlir_sched.runner.bench import Bench
from mlir_sched.runner.calibration import Calibration
from mlir_sched.runner.device import Device, LocalDevice
from mlir_sched.runner.paired_sampling import PairSampler
from mlir_sched.runner.wall_clock import WallClock, call_seconds
from mlir_sched.runner.workspace import Workspace


class LocalBench(Bench):
    """IREE's CPU drivers on pinned cores, with a second device on several cores to expose races."""

    def __init__(self, setup: protocol.LocalSetup) -> None:
        super().__init__()
        self._setup = setup
        os.sched_setaffinity(0, setup.cores)
        workers = setup.cores if len(setup.cores) > 1 else setup.race_cores
        rt.flags.parse_flags("--task_topology_cpu_ids=" + ",".join(map(str, workers)))
        self._instance = rt.VmInstance()
        self._device = LocalDevice.for_timing(self._instance, len(setup.cores))
        self._race_device: LocalDevice | None = None
        self._race_workspace: Workspace | None = None
        self._calibration = Calibration(setup.cores, setup.calibration_tolerance)
        self._sampler = PairSampler(WallClock(self._calibration, threads=len(setup.cores)))

    def device(self) -> Device:
        """Return the device on the cores of timing."""
        return self._device

    def verify_races(self, handle: int, check: int) -> str | None:
        """Run a check on all race cores."""
        workspace, device = self._for_races()
        message = workspace.verify(device.load(self._programs[handle]), check)
        return message and f"on {len(self._setup.race_cores)} threads: {message}"

    def rough_s(self, handle: int, sample_s: float) -> float:
        """Return rough seconds per call by the wall clock."""
        return call_seconds(self._runner_of(handle), sample_s)

    def pairs(self, request: protocol.SamplePairs) -> tuple[protocol.Pair, ...]:
        """Time a program and the baseline in turns."""
        baseline, own = self._runner_of(protocol.BASELINE), self._runner_of(request.handle)
        return self._sampler.pairs(baseline, own, request)

    def noise(self, seconds: float) -> tuple[float, ...]:
        """Run the calibration kernel on one core after the other."""
        share_s = seconds / len(self._setup.cores)
        times = [t for core in self._setup.cores for t in self._calibration.watch(core, share_s)]
        os.sched_setaffinity(0, self._setup.cores)
        return tuple(times)

    def _runner_of(self, handle: int) -> Callable[[int], None]:
        return self._ready().runner_of(self._loaded[handle])

    def _forget(self) -> None:
        super()._forget()
        self._sampler.forget()

    def _leave(self) -> None:
        super()._leave()
        self._race_workspace = None

    def _for_races(self) -> tuple[Workspace, Device]:
        """Return the workspace on several threads, made on first use because it doubles the buffers."""
        self._race_device = self._race_device or LocalDevice(self._instance, "local-task")
        self._race_workspace = self._race_workspace or self._ready().on(self._race_device)
        return self._race_workspace, self._race_device
