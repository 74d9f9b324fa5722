"""The process that runs compiled programs, one request at a time; started by :mod:`mlir_sched.runner`.

It ends when its input pipe closes, which is when the runner ends, however that happens: a thread waits on the pipe
while programs run, and IREE releases Python's lock while they do.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from functools import singledispatchmethod
from typing import Any

import iree.runtime as rt

from mlir_sched.runner import protocol
from mlir_sched.runner.calibration import Calibration
from mlir_sched.runner.device import Device, LoadedProgram
from mlir_sched.runner.paired_sampling import PairSampler
from mlir_sched.runner.program import Program
from mlir_sched.runner.workspace import Workspace, call_seconds


class Server:
    """Holds the devices, the workspace of the current task and its loaded programs."""

    def __init__(self, setup: protocol.Setup) -> None:
        self._setup = setup
        os.sched_setaffinity(0, setup.cores)
        workers = setup.cores if len(setup.cores) > 1 else setup.race_cores
        rt.flags.parse_flags("--task_topology_cpu_ids=" + ",".join(map(str, workers)))
        self._instance = rt.VmInstance()
        self._device = Device(self._instance, "local-sync" if len(setup.cores) == 1 else "local-task")
        self._race_device: Device | None = None
        self._calibration = Calibration(setup.cores, setup.calibration_tolerance)
        self._sampler = PairSampler(self._calibration, threads=len(setup.cores))
        self._workspace: Workspace | None = None
        self._race_workspace: Workspace | None = None
        self._baseline: protocol.Prepare | None = None
        self._loaded: dict[int, LoadedProgram] = {}
        self._programs: dict[int, Program] = {}

    @singledispatchmethod
    def answer(self, request: Any) -> Any:
        """Return the reply to one request."""
        raise TypeError(f"unknown request {type(request).__name__}")

    @answer.register
    def _(self, request: protocol.Prepare) -> protocol.Prepared:
        self._loaded.clear()
        self._programs.clear()
        self._race_workspace = None
        if request != self._baseline:
            self._workspace = None
        self._baseline = request
        try:
            self._workspace = self._workspace or Workspace(self._device, request.baseline, request.rule)
            self._load(protocol.BASELINE, request.baseline)
            start = time.perf_counter()
            error = self._workspace.verify(self._loaded[protocol.BASELINE], 0)
            check_s = time.perf_counter() - start
            call_s = call_seconds(self._workspace.runner_of(self._loaded[protocol.BASELINE]), 1e-3)
        except Exception as exception:
            return protocol.Prepared(0.0, 0.0, str(exception))
        return protocol.Prepared(call_s, check_s, error)

    @answer.register
    def _(self, request: protocol.Load) -> None:
        self._load(request.handle, request.program)

    @answer.register
    def _(self, request: protocol.Drop) -> None:
        self._loaded.pop(request.handle, None)
        self._programs.pop(request.handle, None)

    @answer.register
    def _(self, request: protocol.Verify) -> str | None:
        if not request.races:
            return self._ready().verify(self._loaded[request.handle], request.check)
        workspace, device = self._for_races()
        message = workspace.verify(device.load(self._programs[request.handle]), request.check)
        return message and f"on {len(self._setup.race_cores)} threads: {message}"

    @answer.register
    def _(self, request: protocol.Warm) -> float:
        return call_seconds(self._ready().runner_of(self._loaded[request.handle]), request.sample_s)

    @answer.register
    def _(self, request: protocol.SamplePairs) -> tuple[protocol.Pair, ...]:
        workspace = self._ready()
        baseline = workspace.runner_of(self._loaded[protocol.BASELINE])
        return self._sampler.sample(baseline, workspace.runner_of(self._loaded[request.handle]), request)

    @answer.register
    def _(self, request: protocol.MeasureNoise) -> tuple[float, ...]:
        share_s = request.seconds / len(self._setup.cores)
        times = [t for core in self._setup.cores for t in self._calibration.watch(core, share_s)]
        os.sched_setaffinity(0, self._setup.cores)
        return tuple(times)

    def _load(self, handle: int, program: Program) -> None:
        self._loaded[handle] = self._device.load(program)
        self._programs[handle] = program

    def _ready(self) -> Workspace:
        if self._workspace is None:
            raise RuntimeError("no baseline was prepared")
        return self._workspace

    def _for_races(self) -> tuple[Workspace, Device]:
        """Return the workspace on several threads, made on first use because it doubles the memory."""
        assert self._baseline is not None
        self._race_device = self._race_device or Device(self._instance, "local-task")
        if self._race_workspace is None:
            self._race_workspace = Workspace(self._race_device, self._baseline.baseline, self._baseline.rule)
        return self._race_workspace, self._race_device


def main() -> None:
    """Serve requests from standard input until it closes; replies go to what standard output was."""
    replies = os.dup(1)
    os.dup2(2, 1)  # what programs and libraries print must not end up among the replies
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(requests,), daemon=True).start()
    server = Server(requests.get())
    protocol.write_frame(replies, None)
    while True:
        request = requests.get()
        try:
            reply = server.answer(request)
        except Exception as exception:
            reply = protocol.Raised(f"{type(exception).__name__}: {exception}")
        protocol.write_frame(replies, reply)


def _read_requests(requests: queue.SimpleQueue[Any]) -> None:
    try:
        while True:
            requests.put(protocol.read_frame(0))
    except BaseException:
        sys.stderr.flush()
        os._exit(0)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        os._exit(0)
