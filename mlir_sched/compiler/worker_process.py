"""The parent's side of a worker: compiler work in a child process, so that a crash or a leak costs one job alone.

A worker is bound to one set of compiler flags, because many of IREE's flags are global to a process. It stays warm
between jobs. It is not reached by Ctrl-C and ends when its parent ends, even by ``kill -9`` in the middle of a job.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mlir_sched.errors import EnvironmentFailureError, MlirSchedError, UserError
from mlir_sched.processes.child import POLL_S, Child, ChildCrashError
from mlir_sched.processes.limits import ChildLimits
from mlir_sched.processes.memory import child_memory_bytes

LEAST_CANDIDATE_BYTES, MOST_CANDIDATE_BYTES = 1 << 30, 4 << 30
"""Bytes that a candidate may take where memory is short, and where it is not; compiling one takes about 300 MB."""


class JobError(MlirSchedError):
    """The job raised an exception that it should not raise; the message is its traceback."""


class JobEnvironmentError(EnvironmentFailureError):
    """A job failed for want of memory or with its files; the message is the error's."""


@dataclass(frozen=True)
class WorkerLimits(ChildLimits):
    """The limits of one job.

    Attributes:
        recycle_bytes: Resident memory after a job, in bytes, above which an idle worker is replaced: each compile
            leaves attributes behind in the MLIR context.
    """

    timeout_s: float = 60.0
    memory_bytes: int = MOST_CANDIDATE_BYTES
    recycle_bytes: int = 1 << 30


def candidate_limits(workers: int) -> WorkerLimits:
    """Return the limits of each of ``workers`` simultaneous candidates: 1 to 4 GiB, less on small machines."""
    share = min(MOST_CANDIDATE_BYTES, max(LEAST_CANDIDATE_BYTES, child_memory_bytes(workers)))
    memory_bytes = min(share, child_memory_bytes())
    return WorkerLimits(memory_bytes=memory_bytes, recycle_bytes=min(1 << 30, memory_bytes // 2))


STARTING = WorkerLimits(timeout_s=120.0)
"""Limits of sending a worker its flags or a job; a worker starts within 0.5 s on a quiet machine."""


class Worker(Child):
    """A child process that runs one job at a time; a context manager."""

    def __init__(self, flags: tuple[str, ...]) -> None:
        self.flags = flags
        self._started_s = time.monotonic()
        self._ready = False
        super().__init__("the compiler process", "mlir_sched.compiler.worker.main")
        self._send(flags)

    def submit(self, job: str, *arguments: Any) -> None:
        """Start a job.

        Args:
            job: The function to call in the worker, as ``package.module:function``.
            arguments: Its arguments; they and the result must be picklable.

        Raises:
            ChildTimeoutError, ChildMemoryError: The worker does not take the job; it was killed.
        """
        self._started_s = time.monotonic()
        self.forget_said()
        self._send((job, arguments))

    def is_done(self, limits: WorkerLimits) -> bool:
        """Return whether the job's result can be received; does not wait.

        Raises:
            ChildError: The worker died, or the job went over a limit and the worker was killed.
            UserError: The compiler does not know one of the flags.
            EnvironmentFailureError: The worker ended before it was ready.
        """
        if not self._ready and self.is_readable():
            self._receive_ready(limits)
        if self._ready and self.is_readable():
            return True
        self.enforce(limits, self._started_s)
        return False

    def result(self, limits: WorkerLimits) -> Any:
        """Return the result of a job that is done.

        Raises:
            UserError, CompilerError: The job raised it.
            JobEnvironmentError: The job had no memory, or met an error of the system.
            JobError: The job raised something else.
            ChildError: As ``is_done``.
        """
        succeeded, value = self.receive(limits, self._started_s)
        if not succeeded:
            raise value
        return value

    def wait(self, limits: WorkerLimits) -> Any:
        """Wait for the job's result and return it; raises what ``is_done`` and ``result`` raise."""
        while not self.is_done(limits):
            self.is_readable(POLL_S)
        return self.result(limits)

    def seconds(self) -> float:
        """Return the seconds since the job was submitted, or since the worker was ready if that was later."""
        return time.monotonic() - self._started_s

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _send(self, message: Any) -> None:
        with suppress(ChildCrashError):  # a worker's death is found when its answer is due
            self.send(message, STARTING)

    def _receive_ready(self, limits: WorkerLimits) -> None:
        """Take the worker's first message: None, or why it cannot work."""
        try:
            error = self.receive(limits, self._started_s)
        except ChildCrashError as crash:
            raise self._startup_error(crash) from None
        if error is not None:
            raise error
        self._ready = True
        self._started_s = time.monotonic()  # starting up does not count against the first job

    def _startup_error(self, crash: ChildCrashError) -> MlirSchedError:
        """Return the error of a worker that ended before it was ready: LLVM ends a process on a wrong flag."""
        text = self.said().replace("mlir-sched: ", "")
        if self.exit_code() == 1 and "command line" in text:
            return UserError(f"the compiler rejects the flags {' '.join(self.flags)}: {text}")
        return EnvironmentFailureError(f"the compiler process did not start: {crash}")


def run_isolated(flags: tuple[str, ...], job: str, *arguments: Any, limits: WorkerLimits | None = None) -> Any:
    """Run one job in a worker of its own and return its result; raises what ``Worker.wait`` raises."""
    with Worker(flags) as worker:
        worker.submit(job, *arguments)
        return worker.wait(limits or WorkerLimits())
