"""Compiler work in child processes, so that a crash, a hang or a leak costs one job and not the run.

A worker is bound to one set of compiler flags, because many of IREE's flags are global to a process. It stays warm
between jobs. It is not reached by Ctrl-C and ends when its parent ends, even by ``kill -9`` in the middle of a job.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

from mlir_sched.errors import MlirSchedError, UserError

POLL_S = 0.05
"""Seconds between two looks at a busy worker's deadline and memory."""
STDERR_TAIL = 600
"""Characters of a dead worker's stderr that its error message keeps."""


class WorkerCrashError(MlirSchedError):
    """The worker died, or went over its memory limit and was killed."""


class WorkerTimeoutError(MlirSchedError):
    """The job did not end in time; the worker was killed."""


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
    memory_bytes: int = 4 << 30
    recycle_bytes: int = 1 << 30


class Worker:
    """A child process that runs one job at a time; a context manager."""

    def __init__(self, flags: tuple[str, ...]) -> None:
        self.flags = flags
        self.started_s = 0.0
        self._ready = False
        self._stderr = tempfile.TemporaryFile("a+b")  # noqa: SIM115  (closed with the worker)
        ours, theirs = _connection_pair()
        lifeline, self._lifeline = os.pipe()
        self.connection = ours
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mlir_sched.compiler.worker_main", str(theirs.fileno()), str(lifeline)],
            stdin=subprocess.DEVNULL,
            stdout=self._stderr,
            stderr=self._stderr,
            pass_fds=(theirs.fileno(), lifeline),
            env=_environment(),
            start_new_session=True,
        )
        theirs.close()
        os.close(lifeline)
        self._send(flags)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def submit(self, job: str, *arguments: Any) -> None:
        """Start a job.

        Args:
            job: The function to call in the worker, as ``package.module:function``.
            arguments: Its arguments; they and the result must be picklable.
        """
        self.started_s = time.monotonic()
        os.ftruncate(self._stderr.fileno(), 0)
        self._send((job, arguments))

    def is_done(self, limits: WorkerLimits) -> bool:
        """Return whether the job's result can be received; does not wait.

        Raises:
            WorkerTimeoutError: The job took longer than the limit; the worker was killed.
            WorkerCrashError: The worker died, or took more memory than the limit and was killed.
            UserError: The compiler does not know one of the flags.
        """
        if not self._ready and self.connection.poll():
            self._receive_ready()
        if self._ready and self.connection.poll():
            return True
        self._enforce(limits)
        return False

    def receive(self) -> Any:
        """Return the result of a job that is done.

        Raises:
            UserError: The job raised it.
            JobError: The job raised something else.
            WorkerCrashError: The worker died.
        """
        try:
            succeeded, value = self.connection.recv()
        except (EOFError, OSError):
            raise WorkerCrashError(self._obituary()) from None
        if not succeeded:
            raise value
        return value

    def wait(self, limits: WorkerLimits) -> Any:
        """Wait for the job's result and return it; raises what ``is_done`` and ``receive`` raise."""
        while not self.is_done(limits):
            self.connection.poll(POLL_S)
        return self.receive()

    def _enforce(self, limits: WorkerLimits) -> None:
        if self.seconds() > limits.timeout_s:
            self.kill()
            raise WorkerTimeoutError(f"stopped after {limits.timeout_s:g} s")
        if self.memory_bytes() > limits.memory_bytes:
            self.kill()
            raise WorkerCrashError(f"stopped: it used more than {limits.memory_bytes >> 20} MiB of memory")

    def seconds(self) -> float:
        """Return the seconds since its job was submitted."""
        return time.monotonic() - self.started_s

    def memory_bytes(self) -> int:
        """Return its resident memory in bytes; 0 once it is dead."""
        try:
            return int(psutil.Process(self._process.pid).memory_info().rss)
        except psutil.Error:
            return 0

    def kill(self) -> None:
        """End the worker at once."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self.connection.close()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        self._stderr.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def _send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # that a worker died is found out when its answer is due
            self.connection.send(message)

    def _receive_ready(self) -> None:
        """Take the worker's first message: None, or why it cannot work."""
        try:
            error = self.connection.recv()
        except (EOFError, OSError):
            raise self._startup_error() from None
        if error is not None:
            raise error
        self._ready = True
        self.started_s = time.monotonic()  # starting up does not count against the first job

    def _startup_error(self) -> MlirSchedError:
        """Return why the worker ended before it was ready: LLVM ends a process that is given a wrong flag."""
        code = self._process.wait()
        text = self._stderr_text().replace("mlir-sched: ", "").strip()
        if code == 1 and "command line" in text:
            return UserError(f"the compiler rejects the flags {' '.join(self.flags)}: {text}")
        return WorkerCrashError(self._obituary())

    def _obituary(self) -> str:
        code = self._process.wait()
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        tail = self._stderr_text().strip()[-STDERR_TAIL:]
        return f"the compiler process died ({how})" + (f": {tail}" if tail else "")

    def _stderr_text(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")


def run_isolated(flags: tuple[str, ...], job: str, *arguments: Any, limits: WorkerLimits | None = None) -> Any:
    """Run one job in a worker of its own and return its result; raises what ``Worker.wait`` raises."""
    with Worker(flags) as worker:
        worker.submit(job, *arguments)
        return worker.wait(limits or WorkerLimits())


def _connection_pair() -> tuple[Connection, Connection]:
    from multiprocessing import Pipe

    ours, theirs = Pipe()
    return ours, theirs


def _environment() -> dict[str, str]:
    """Return the child's environment: it finds this very package, wherever it was imported from."""
    package_parent = str(Path(__file__).resolve().parent.parent)
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": package_parent + (os.pathsep + path if path else "")}
