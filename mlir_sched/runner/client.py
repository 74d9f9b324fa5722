"""The parent's end of the runner process: start it, ask it, and kill it when it takes too long."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from typing import IO, Any, NoReturn

from mlir_sched.errors import Failure, FailureClass, MlirSchedError
from mlir_sched.processes.exit_status import STDERR_TAIL_BYTES, describe_exit
from mlir_sched.processes.frames import FrameError, Wait, is_ready, read_frame, write_frame
from mlir_sched.processes.memory import child_memory_bytes, mebibytes, resident_bytes
from mlir_sched.processes.program import kill_group
from mlir_sched.processes.python_child import child_environment, python_command
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.runner import protocol
from mlir_sched.runner.protocol import RequestFailed

POLL_S = 0.1
"""Seconds between two looks at the memory of a process that is awaited; a look takes 50 us of another core."""
START_TIMEOUT_S = 120.0
"""Patience for the process to start; it takes about 0.3 s on a quiet machine."""


class RunnerStartError(MlirSchedError):
    """The runner process does not start; the message holds what it said."""


ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": str(128 * 1024),
}
"""What a runner process is started with. glibc raises its threshold for ``mmap`` to the largest block that was freed; a
fixed one puts large buffers where a program of its own that has freed nothing has them: all at one offset in their
pages, where image and result compete for the same sets of the L1 cache. A depthwise convolution that took 70 us
elsewhere takes 105 us there (112x112x32, Zen 4), and others take the same."""


class RunnerClient:
    """One runner process at a time, started on demand.

    Attributes:
        generation: Counts the processes started so far; what an earlier one had loaded is gone.
    """

    def __init__(self, setup: protocol.Setup) -> None:
        self._setup = setup
        self._memory_bytes = child_memory_bytes()
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.generation = 0

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process is not None else None

    def ask_again(self, request: object, timeout_s: float) -> Any:
        """Ask as :meth:`ask` does, and once more in a new process when an old one crashes.

        For requests that are not to blame: a program that ran before may have damaged the process's memory.
        """
        try:
            return self.ask(request, timeout_s)
        except RequestFailed as failed:
            if failed.failure.kind != FailureClass.RUN_CRASH:
                raise
            return self.ask(request, timeout_s)

    def ask(self, request: object, timeout_s: float) -> Any:
        """Return the reply to a request.

        Raises:
            RequestFailed: It raised (RUN_ERROR, INTERNAL_ERROR, or the failure that was raised). Or there is no process
                any more: it was killed after ``timeout_s`` (RUN_TIMEOUT) or over its memory (RUN_MEMORY), or it died
                (RUN_CRASH).
        """
        self.start()
        reply = self._exchange(request, timeout_s)
        if isinstance(reply, protocol.Raised):
            raise RequestFailed(reply.failure)
        return reply

    def start(self) -> None:
        """Start the process if it does not run.

        Raises:
            RunnerStartError: It does not come up.
        """
        if self._process is not None and self._process.poll() is None:
            return
        self.kill()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by kill()
        self._folder = temporary_folder()
        self._process = subprocess.Popen(
            python_command("mlir_sched.runner.process.server"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=child_environment(self._folder.name, ENVIRONMENT),
            bufsize=0,
            start_new_session=True,  # Ctrl-C reaches the parent only, which decides what to do
        )
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        self.generation += 1
        try:
            self._exchange(protocol.Start(self._setup, self._folder.name), START_TIMEOUT_S)
        except RequestFailed as failed:
            raise RunnerStartError(f"the runner process did not start: {failed}") from failed

    def kill(self) -> None:
        """End the process and those it started at once and release what they held; harmless when none runs."""
        if self._process is not None:
            kill_group(self._process)
            self._process = None
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _exchange(self, request: object, timeout_s: float) -> Any:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        wait = self._waiting(timeout_s)
        try:
            write_frame(self._process.stdin.fileno(), request, wait)
            reply = read_frame(self._process.stdout.fileno(), wait)
        except (EOFError, BrokenPipeError):
            raise RequestFailed(Failure(FailureClass.RUN_CRASH, self._obituary())) from None
        except FrameError as error:
            self.kill()
            raise RequestFailed(Failure(FailureClass.RUN_CRASH, f"the runner process is damaged: {error}")) from None
        self._check_memory()
        return reply

    def _waiting(self, timeout_s: float) -> Wait:
        """Return how to wait for the process to read or write on: for so long in all, and within its memory."""
        deadline = time.monotonic() + timeout_s

        def wait(descriptor: int, event: int) -> None:
            while not is_ready(descriptor, event, min(POLL_S, max(0.0, deadline - time.monotonic()))):
                if time.monotonic() >= deadline:
                    self._give_up(FailureClass.RUN_TIMEOUT, f"no result after {timeout_s:.3g} s")
                self._check_memory()

        return wait

    def _check_memory(self) -> None:
        if self.pid is not None and resident_bytes(self.pid) > self._memory_bytes:
            self._give_up(FailureClass.RUN_MEMORY, f"it used more than {mebibytes(self._memory_bytes)} of memory")

    def _give_up(self, kind: FailureClass, message: str) -> NoReturn:
        self.kill()
        raise RequestFailed(Failure(kind, message))

    def _obituary(self) -> str:
        """Say how the process died and what it said last, and release it."""
        assert self._process is not None
        assert self._stderr is not None
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            code = 0
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - STDERR_TAIL_BYTES))
        obituary = describe_exit("the runner process", code, self._stderr.read())
        self.kill()
        return obituary
