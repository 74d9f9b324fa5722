"""Compiler work in child processes, so that a crash, a hang or a leak costs one job and not the run.

A worker is bound to one set of compiler flags, because many of IREE's flags are global to a process. It stays warm
between jobs. It is not reached by Ctrl-C and ends when its parent ends, even by ``kill -9`` in the middle of a job.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from mlir_sched.errors import MlirSchedError, UserError
from mlir_sched.processes.exit_status import signal_name
from mlir_sched.processes.frames import FrameError, Wait, is_ready, read_frame, write_frame
from mlir_sched.processes.memory import child_memory_bytes, mebibytes, resident_bytes
from mlir_sched.processes.program import kill_group
from mlir_sched.processes.python_child import child_environment, python_command
from mlir_sched.processes.temporary import temporary_folder

POLL_S = 0.05
"""Seconds between two looks at a busy worker's deadline and memory."""
STDERR_TAIL = 600
"""Characters of a dead worker's stderr that its error message keeps."""
END_S = 5.0
"""Seconds that a worker may take to end after it closed its connection."""
LEAST_CANDIDATE_BYTES, MOST_CANDIDATE_BYTES = 1 << 30, 4 << 30
"""Memory that a candidate may take where memory is short, and where it is not; those that compile take about 300 MB."""


class WorkerCrashError(MlirSchedError):
    """The worker died."""


class WorkerTimeoutError(MlirSchedError):
    """The job did not end in time; the worker was killed."""


class WorkerMemoryError(WorkerCrashError):
    """The worker went over its memory limit and was killed."""


class JobError(MlirSchedError):
    """The job raised an exception that it should not raise; the message is its traceback."""


@dataclass(frozen=True)
class WorkerLimits:
    """What one job may take.

    Attributes:
        timeout_s: Seconds per job, > 0.
        memory_bytes: Resident memory of the worker, in bytes, above which the job is stopped.
        recycle_bytes: Resident memory after a job, in bytes, above which an idle worker is replaced: each compile
            leaves attributes behind in the MLIR context.
    """

    timeout_s: float = 60.0
    memory_bytes: int = MOST_CANDIDATE_BYTES
    recycle_bytes: int = 1 << 30


def candidate_limits(workers: int) -> WorkerLimits:
    """Return what one candidate may take where so many are compiled at a time: 1 to 4 GiB, less on small machines."""
    share = min(MOST_CANDIDATE_BYTES, max(LEAST_CANDIDATE_BYTES, child_memory_bytes(workers)))
    memory_bytes = min(share, child_memory_bytes())
    return WorkerLimits(memory_bytes=memory_bytes, recycle_bytes=min(1 << 30, memory_bytes // 2))


STARTING = WorkerLimits(timeout_s=120.0)
"""Limits until a worker has taken its flags or a job: it starts within 0.5 s on a quiet machine."""


class Worker:
    """A child process that runs one job at a time; a context manager."""

    def __init__(self, flags: tuple[str, ...]) -> None:
        self.flags = flags
        self.started_s = time.monotonic()
        self._ready = False
        self._folder = temporary_folder()
        self._stderr = tempfile.TemporaryFile("a+b")  # noqa: SIM115  (closed with the worker)
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        lifeline, self._lifeline = os.pipe()
        self._process = subprocess.Popen(
            python_command("mlir_sched.processes.worker_main", str(theirs.fileno()), str(lifeline)),
            stdin=subprocess.DEVNULL,
            stdout=self._stderr,
            stderr=self._stderr,
            pass_fds=(theirs.fileno(), lifeline),
            env=child_environment(self._folder.name),
            start_new_session=True,
        )
        theirs.close()
        os.close(lifeline)
        self._send(flags)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when there is something to receive."""
        return self._socket.fileno()

    def submit(self, job: str, *arguments: Any) -> None:
        """Start a job.

        Args:
            job: The function to call in the worker, as ``package.module:function``.
            arguments: Its arguments; they and the result must be picklable.

        Raises:
            WorkerTimeoutError: The worker does not take the job; it was killed.
        """
        self.started_s = time.monotonic()
        os.ftruncate(self._stderr.fileno(), 0)
        self._send((job, arguments))

    def is_done(self, limits: WorkerLimits) -> bool:
        """Return whether the job's result can be received; does not wait.

        Raises:
            WorkerTimeoutError: The job took longer than the limit; the worker was killed.
            WorkerMemoryError: The job took more memory than the limit; the worker was killed.
            WorkerCrashError: The worker died.
            UserError: The compiler does not know one of the flags.
        """
        if not self._ready and self._is_readable():
            self._receive_ready(limits)
        if self._ready and self._is_readable():
            return True
        self._enforce(limits)
        return False

    def receive(self, limits: WorkerLimits) -> Any:
        """Return the result of a job that is done.

        Raises:
            UserError: The job raised it.
            JobError: The job raised something else.
            WorkerTimeoutError, WorkerMemoryError, WorkerCrashError: As ``is_done``.
        """
        succeeded, value = self._read(limits)
        if not succeeded:
            raise value
        return value

    def wait(self, limits: WorkerLimits) -> Any:
        """Wait for the job's result and return it; raises what ``is_done`` and ``receive`` raise."""
        while not self.is_done(limits):
            is_ready(self.fileno(), select.POLLIN, POLL_S)
        return self.receive(limits)

    def _enforce(self, limits: WorkerLimits) -> None:
        if self.seconds() > limits.timeout_s:
            self.kill()
            raise WorkerTimeoutError(f"stopped after {limits.timeout_s:g} s")
        if self.memory_bytes() > limits.memory_bytes:
            self.kill()
            raise WorkerMemoryError(f"stopped: it used more than {mebibytes(limits.memory_bytes)} of memory")

    def seconds(self) -> float:
        """Return the seconds since its job was submitted."""
        return time.monotonic() - self.started_s

    def memory_bytes(self) -> int:
        """Return its resident memory in bytes, that of a linker that it runs included; 0 once it is dead."""
        return resident_bytes(self._process.pid)

    def kill(self) -> None:
        """End the worker, with what it has started, at once; harmless when it has ended."""
        if self.fileno() < 0:
            return
        kill_group(self._process)
        self._socket.close()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        self._stderr.close()
        self._folder.cleanup()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def _send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # that a worker died is found out when its answer is due
            write_frame(self.fileno(), message, self._waiting(STARTING))

    def _read(self, limits: WorkerLimits) -> Any:
        try:
            return read_frame(self.fileno(), self._waiting(limits))
        except (EOFError, OSError, FrameError):
            raise WorkerCrashError(self._obituary()) from None

    def _waiting(self, limits: WorkerLimits) -> Wait:
        """Return how to wait for the worker to read or write on: within the limits."""

        def wait(descriptor: int, event: int) -> None:
            while not is_ready(descriptor, event, POLL_S):
                self._enforce(limits)

        return wait

    def _is_readable(self) -> bool:
        return is_ready(self.fileno(), select.POLLIN, 0.0)

    def _receive_ready(self, limits: WorkerLimits) -> None:
        """Take the worker's first message: None, or why it cannot work."""
        try:
            error = read_frame(self.fileno(), self._waiting(limits))
        except (EOFError, OSError, FrameError):
            raise self._startup_error() from None
        if error is not None:
            raise error
        self._ready = True
        self.started_s = time.monotonic()  # starting up does not count against the first job

    def _startup_error(self) -> MlirSchedError:
        """Return why the worker ended before it was ready: LLVM ends a process that is given a wrong flag."""
        code = self._wait_for_end()
        text = self._stderr_text().replace("mlir-sched: ", "").strip()
        if code == 1 and "command line" in text:
            return UserError(f"the compiler rejects the flags {' '.join(self.flags)}: {text}")
        return WorkerCrashError(self._obituary())

    def _obituary(self) -> str:
        code = self._wait_for_end()
        how = signal_name(-code) if code < 0 else f"exit code {code}"
        tail = self._stderr_text().strip()[-STDERR_TAIL:]
        return f"the compiler process died ({how})" + (f": {tail}" if tail else "")

    def _wait_for_end(self) -> int:
        """Return the exit code of a worker that has closed its connection, or that must not go on."""
        try:
            return self._process.wait(timeout=END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _stderr_text(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")


def run_isolated(flags: tuple[str, ...], job: str, *arguments: Any, limits: WorkerLimits | None = None) -> Any:
    """Run one job in a worker of its own and return its result; raises what ``Worker.wait`` raises."""
    with Worker(flags) as worker:
        worker.submit(job, *arguments)
        return worker.wait(limits or WorkerLimits())
