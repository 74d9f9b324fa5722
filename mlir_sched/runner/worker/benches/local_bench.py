"""Checks and times programs on the CPU, in this process."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

import iree.runtime as rt

from mlir_sched.outcome import LoadCost
from mlir_sched.runner import protocol
from mlir_sched.runner.worker.benches.chained_bench import ChainedBench
from mlir_sched.runner.worker.calibration import Calibration
from mlir_sched.runner.worker.device import Device, LocalDevice
from mlir_sched.runner.worker.loading import load_cost
from mlir_sched.runner.worker.sequences import MOST_CALLS, RestartedCalls
from mlir_sched.runner.worker.spinning_threads import yield_to_workers
from mlir_sched.runner.worker.wall_clock import Callee, WallClock, call_seconds, warm_call_s
from mlir_sched.runner.worker.workspace import Workspace
from mlir_sched.targets.clock import WALL
from mlir_sched.targets.target import LOCAL_SYNC, LOCAL_TASK

CHAINED_S = 500e-6
"""Seconds per call on several threads up to which a dispatch is timed with a chain, if it has one: waking the workers
and waiting for them takes 30 to 60 us of a call."""

P = ParamSpec("P")
T = TypeVar("T")


class LocalBench(ChainedBench[Callee]):
    """IREE's CPU drivers on pinned cores.

    A second device is made when it is needed. Where programs are timed on ``local-sync``, it is ``local-task`` on
    several cores, to expose races. Where they are timed on ``local-task``, it is ``local-sync``, for the programs that
    ask for it.

    Programs on several threads are timed by a thread that yields to IREE's workers. This thread may wait for a core on
    a busy machine; numbers are checked by the main thread, which does not wait.
    """

    def __init__(self, setup: protocol.WallSetup) -> None:
        os.sched_setaffinity(0, setup.cores)
        self._calibration = Calibration(setup.cores, setup.calibration_tolerance)
        super().__init__(WallClock(self._calibration), CHAINED_S)
        self._setup = setup
        workers = setup.cores if len(setup.cores) > 1 else setup.race_cores
        rt.flags.parse_flags("--task_topology_cpu_ids=" + ",".join(map(str, workers)))
        self._instance = rt.VmInstance()
        self._device = LocalDevice.on(self._instance, len(setup.cores))
        self._other_device: LocalDevice | None = None
        self._other_workspace: Workspace | None = None
        several = len(setup.cores) > 1
        self._timing_thread = ThreadPoolExecutor(1, initializer=yield_to_workers) if several else None

    def device(self) -> Device:
        """Return the device on the cores of timing."""
        return self._device

    def verify_races(self, handle: int, check: int) -> str | None:
        """Run a check on all race cores or, where programs are timed on several cores, on one."""
        workspace, device = self._elsewhere()
        message = workspace.verify(device.load(self._programs[handle]), check, again=handle == protocol.BASELINE)
        threads = 1 if len(self._setup.cores) > 1 else len(self._setup.race_cores)
        return message and f"on {threads} thread{'s' * (threads > 1)}: {message}"

    def rough_s(self, handle: int, sample_s: float) -> float:
        """Return rough seconds per call by the wall clock."""
        callee = self._callee(handle)
        return self._timed(call_seconds, callee.run, sample_s) / callee.dispatches

    def pairs(self, request: protocol.SamplePairs) -> tuple[protocol.Pair, ...]:
        """Time a program and the baseline in turns."""
        baseline, own = self._callee(protocol.BASELINE), self._callee(request.handle)
        return self._timed(self._sampler.pairs, baseline, own, request)

    def loading(self, request: protocol.MeasureLoading) -> LoadCost:
        """Load a program on the cores of timing, and call it."""
        return load_cost(self._device, request.program, request.calls)

    def noise(self, seconds: float) -> tuple[float, ...]:
        """Run the calibration kernel on one core after the other, and return the seconds of every run."""
        share_s = seconds / len(self._setup.cores)
        times = [t for core in self._setup.cores for t in self._calibration.watch(core, share_s)]
        os.sched_setaffinity(0, self._setup.cores)
        return tuple(times)

    def _timed(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of a function that times programs, called in the thread that may call them."""
        if self._timing_thread is None:
            return function(*args, **kwargs)
        return self._timing_thread.submit(function, *args, **kwargs).result()

    def _callee_of(self, handle: int, longest_s: float) -> Callee:
        workspace, _ = self._place_of(handle)
        threads = 1 if self._programs[handle].local_sync else len(self._setup.cores)
        loaded, length = self._loaded[handle], WALL.chain_length(threads)
        chained = length > 0 and loaded.has_chain
        if chained and self._timed(warm_call_s, workspace.warm_runner_of(loaded)) <= longest_s:
            return Callee(workspace.chain_runner_of(loaded, length), threads, length)
        run = workspace.runner_of(loaded)
        if isinstance(run, RestartedCalls):
            return Callee(run, threads, restart=run.restart, most_calls=MOST_CALLS)
        return Callee(run, threads)

    def _is_chained(self, callee: Callee) -> bool:
        return callee.dispatches > 1

    def _place_of(self, handle: int) -> tuple[Workspace, Device]:
        place = super()._place_of(handle)
        elsewhere = self._programs[handle].local_sync and len(self._setup.cores) > 1
        return self._elsewhere() if elsewhere else place

    def _leave(self) -> None:
        super()._leave()
        self._other_workspace = None

    def _elsewhere(self) -> tuple[Workspace, Device]:
        """Return the workspace on the second device, and that device; made on first use, as they double the buffers."""
        driver = LOCAL_TASK if len(self._setup.cores) == 1 else LOCAL_SYNC
        self._other_device = self._other_device or LocalDevice(self._instance, driver)
        self._other_workspace = self._other_workspace or self._ready().on(self._other_device)
        return self._other_workspace, self._other_device
