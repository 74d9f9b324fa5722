"""The parent's end of the runner process: start it, ask it, and kill it when it takes too long."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from typing import IO, Any

from mlir_sched.errors import Failure, FailureClass, MlirSchedError
from mlir_sched.runner import protocol

START_TIMEOUT_S = 120.0
"""Patience for the process to start; it takes about 0.3 s on a quiet machine."""

STDERR_TAIL_BYTES = 2000
"""How much of what a dead process said goes into the failure's message."""


class RunnerStartError(MlirSchedError):
    """The runner process does not start; the message holds what it said."""


class RequestFailed(Exception):  # noqa: N818 - it carries a failure, it is not an error of the tool
    """A request got no answer; ``failure`` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class RunnerClient:
    """One runner process at a time, started on demand.

    Attributes:
        generation: Counts the processes started so far; what an earlier one had loaded is gone.
    """

    def __init__(self, setup: protocol.Setup) -> None:
        self._setup = setup
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
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
            RequestFailed: It raised (RUN_ERROR), took longer than ``timeout_s`` (RUN_TIMEOUT; the process is killed)
                or killed the process (RUN_CRASH).
        """
        self.start()
        reply = self._exchange(request, timeout_s)
        if isinstance(reply, protocol.Raised):
            raise RequestFailed(Failure(FailureClass.RUN_ERROR, reply.message))
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
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mlir_sched.runner.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environment,
            bufsize=0,
            start_new_session=True,  # Ctrl-C reaches the parent only, which decides what to do
        )
        self.generation += 1
        try:
            self._exchange(self._setup, START_TIMEOUT_S)
        except RequestFailed as failed:
            raise RunnerStartError(f"the runner process did not start: {failed}") from failed

    def kill(self) -> None:
        """End the process at once and release its pipes; harmless when none runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process = None
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None

    def _exchange(self, request: object, timeout_s: float) -> Any:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout_s
        try:
            protocol.write_frame(self._process.stdin.fileno(), request)
            if not select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                self.kill()
                raise RequestFailed(Failure(FailureClass.RUN_TIMEOUT, f"no result after {timeout_s:.3g} s"))
            return protocol.read_frame(self._process.stdout.fileno())
        except (EOFError, BrokenPipeError):
            raise RequestFailed(Failure(FailureClass.RUN_CRASH, self._obituary())) from None

    def _obituary(self) -> str:
        """Say how the process died and what it said last, and release it."""
        assert self._process is not None
        assert self._stderr is not None
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            code = 0
        how = f"killed by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - STDERR_TAIL_BYTES))
        said = self._stderr.read().decode(errors="replace").strip()
        self.kill()
        return f"the runner process was {how}" + (f"; it said: {said}" if said else "")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
