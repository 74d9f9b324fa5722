"""The parent's end of the runner process: start it, ask it, and kill it when it takes too long."""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from mlir_sched.errors import EnvironmentFailureError, Failure, FailureClass, FailureOrigin
from mlir_sched.processes.child import Child, ChildCrashError
from mlir_sched.processes.limits import ChildError, ChildLimits, ChildMemoryError, ChildStalledError, ChildTimeoutError
from mlir_sched.processes.memory import child_memory_bytes
from mlir_sched.processes.temporary import session_folder
from mlir_sched.runner import protocol
from mlir_sched.runner.benchmark_module import find_tools
from mlir_sched.runner.options import RunnerOptions
from mlir_sched.runner.protocol import CallsSetup, EventsSetup, RequestFailed, Setup, WallSetup
from mlir_sched.targets.clock import CALLS, EVENTS, WALL, Clock

START_TIMEOUT_S = 120.0
"""Seconds that the process may take to start; it takes about 0.3 s on a quiet machine."""


class RunnerStartError(EnvironmentFailureError):
    """The runner process does not start; the message holds its output."""


ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": str(128 * 1024),
}
"""The environment variables of a runner process. glibc raises its threshold for ``mmap`` to the largest block freed so
far; a fixed threshold puts large buffers where a stand-alone program that has freed nothing has them: all at the same
offset in their pages, where image and result may compete for the same sets of the L1 cache."""
FAILURES: dict[type[ChildError], FailureClass] = {
    ChildCrashError: FailureClass.RUN_CRASH,
    ChildTimeoutError: FailureClass.RUN_TIMEOUT,
    ChildStalledError: FailureClass.RUN_TIMEOUT,
    ChildMemoryError: FailureClass.RUN_MEMORY,
}


class RunnerClient:
    """One runner process at a time, started on demand.

    Attributes:
        generation: Number of processes started so far; programs loaded in an earlier process are gone.
    """

    def __init__(self, setup: protocol.Setup) -> None:
        self._setup = setup
        self._memory_bytes = child_memory_bytes()
        self._child: Child | None = None
        self.generation = 0

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._child.pid if self._child is not None else None

    @property
    def folder(self) -> Path | None:
        """Folder of its temporary files while it runs."""
        return self._child.folder if self._child is not None else None

    def prepare(self, request: protocol.Prepare, first_call_s: float, following_s: Callable[[float], float]) -> Any:
        """Return the reply to a Prepare, asked once more in a new process if the process crashes.

        Preparing causes no crash: a program that ran before may have damaged the process's memory.

        Args:
            first_call_s: Seconds until the first call of the baseline has ended.
            following_s: Returns the seconds from the end of a call to that of the next, given the seconds of the call.
        """
        try:
            return self.ask(request, first_call_s, following_s)
        except RequestFailed as failed:
            if failed.failure.kind != FailureClass.RUN_CRASH:
                raise
            return self.ask(request, first_call_s, following_s)

    def keep_books(self, request: object, timeout_s: float) -> Any:
        """Return the reply to a request that runs no program: where it takes too long, the machine is to blame.

        Raises:
            RequestFailed, RunnerStartError: As :meth:`ask`; the origin of a timeout is the environment.
        """
        try:
            return self.ask(request, timeout_s)
        except RequestFailed as failed:
            failure = failed.failure
            if failure.kind is FailureClass.RUN_TIMEOUT:
                failure = Failure(failure.kind, failure.message, FailureOrigin.ENVIRONMENT)
            raise RequestFailed(failure) from None

    def tell(self, request: object, timeout_s: float) -> None:
        """Send a request whose reply says nothing, if a process runs; losing the process means nothing either."""
        if self._child is not None and self._child.is_alive():
            with suppress(RequestFailed):
                self._exchange(self._child, request, timeout_s)

    def ask(self, request: object, timeout_s: float, following_s: Callable[[float], float] | None = None) -> Any:
        """Return the reply to a request.

        Args:
            following_s: As in :meth:`prepare`, for requests that are answered by signs of life first.

        Raises:
            RequestFailed: The request raised an exception (RUN_ERROR, INTERNAL_ERROR, or the failure that was raised).
                Or the process is gone: it was killed after ``timeout_s`` (RUN_TIMEOUT) or for taking too much memory
                (RUN_MEMORY), or it died (RUN_CRASH).
            RunnerStartError: The process does not start.
        """
        reply = self._exchange(self._running(), request, timeout_s, following_s)
        if self._setup.is_lost_by_errors and _may_have_lost_device(reply):
            self.kill()
        if isinstance(reply, protocol.Raised):
            raise RequestFailed(reply.failure)
        return reply

    def start(self) -> None:
        """Start the process if it does not run.

        Raises:
            RunnerStartError: The process does not start.
        """
        self._running()

    def kill(self) -> None:
        """Kill the process with all that it started, and release its resources; harmless when none runs."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def _running(self) -> Child:
        """Return the process, started if none runs."""
        if self._child is not None and self._child.is_alive():
            return self._child
        self.kill()
        child = self._child = Child("the runner process", "mlir_sched.runner.worker.server", ENVIRONMENT)
        self.generation += 1
        try:
            start = protocol.Start(self._setup, str(child.folder), str(session_folder()))
            self._exchange(child, start, START_TIMEOUT_S)
        except RequestFailed as failed:
            raise RunnerStartError(f"the runner process did not start: {failed}") from failed
        return child

    def _exchange(
        self, child: Child, request: object, timeout_s: float, following_s: Callable[[float], float] | None = None
    ) -> Any:
        limits, since_s = ChildLimits(timeout_s, self._memory_bytes), time.monotonic()
        try:
            child.send(request, limits)
            while isinstance(reply := child.receive(limits, since_s), protocol.Called):
                assert following_s is not None
                limits, since_s = ChildLimits(following_s(reply.seconds), self._memory_bytes), time.monotonic()
            child.enforce(limits, since_s)
        except ChildError as lost:
            self.kill()
            raise RequestFailed(_failure(lost)) from None
        return reply


def _failure(lost: ChildError) -> Failure:
    """Return the failure of a request whose process is lost; where the process stood still, the machine is to blame."""
    stalled = isinstance(lost, ChildStalledError)
    origin = FailureOrigin.ENVIRONMENT if stalled else FailureOrigin.CANDIDATE
    return Failure(FAILURES[type(lost)], str(lost), origin)


def _may_have_lost_device(reply: object) -> bool:
    """Say whether a program of a process met an error, after which all that follow there may fail.

    An illegal address in a CUDA kernel ends the context of its process: from then on, every call is an error. Source:
    CUDA driver API, ``CUDA_ERROR_ILLEGAL_ADDRESS``.
    """
    if isinstance(reply, protocol.Prepared):
        return reply.error is not None
    return isinstance(reply, protocol.Raised) and reply.failure.kind is FailureClass.RUN_ERROR


def setup_of(options: RunnerOptions, cores: tuple[int, ...]) -> Setup:
    """Return what the runner process is set up with; ``cores`` are those that programs are pinned to, if they are."""
    return SETUPS[options.clock](options, cores)


def _wall(options: RunnerOptions, cores: tuple[int, ...]) -> Setup:
    race_cores = tuple(sorted(os.sched_getaffinity(0)))[: options.checks.data_race_threads]
    return WallSetup(cores, race_cores, options.samples.calibration_tolerance)


def _events(options: RunnerOptions, _: tuple[int, ...]) -> Setup:
    return EventsSetup(options.driver.uri, *find_tools())


def _calls(options: RunnerOptions, _: tuple[int, ...]) -> Setup:
    return CallsSetup(options.driver.uri)


SETUPS: Mapping[Clock, Callable[[RunnerOptions, tuple[int, ...]], Setup]] = {
    WALL: _wall,
    EVENTS: _events,
    CALLS: _calls,
}
