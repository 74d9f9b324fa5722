"""A child process that runs one of our modules and talks with this process in messages.

Neither Ctrl-C nor SIGTERM reaches a child: its parent decides what becomes of the work. A child is killed when it takes
more time or memory than it may, together with all that it has started. When its parent dies, even by ``kill -9``, its
connection ends, and so does its lifeline, a pipe that nobody writes to.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlir_sched.processes.exit_status import SAID_BYTES, describe_exit, last_words
from mlir_sched.processes.frames import FrameError, Wait, is_ready, read_frame, write_frame
from mlir_sched.processes.limits import ChildError, ChildLimits
from mlir_sched.processes.memory import resident_bytes
from mlir_sched.processes.program import kill_group
from mlir_sched.processes.python_child import child_environment, python_command
from mlir_sched.processes.temporary import temporary_folder

POLL_S = 0.1
"""Seconds between two looks at the memory of a child that is awaited; a look takes 50 us of another core."""
END_S = 5.0
"""Seconds that a child may take to end after it closed its connection."""


class ChildCrashError(ChildError):
    """The child died, or what it wrote is no message."""


class Child:
    """A running child process.

    The child's module finds the descriptor of its connection and that of its lifeline in ``sys.argv[1:3]``, and further
    arguments behind them. Both of its output streams are kept for :meth:`said`.

    Attributes:
        name: The words for it in messages, e.g. ``the runner process``.
    """

    def __init__(
        self,
        name: str,
        module: str,
        environment: Mapping[str, str] | None = None,
        *,
        arguments: Sequence[str] = (),
        python: str | Path = sys.executable,
    ) -> None:
        """Start the child.

        Args:
            name: The words for it in messages.
            module: Its main program, e.g. ``mlir_sched.runner.process.server``.
            environment: Variables beside those of this process.
            arguments: What the program finds behind the descriptors.
            python: The interpreter; another one than this process's may lack the packages that this one needs.
        """
        self.name = name
        self._folder = temporary_folder()
        self._said = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - closed by kill()
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        lifeline, self._lifeline = os.pipe()
        self._process = subprocess.Popen(
            python_command(module, str(theirs.fileno()), str(lifeline), *arguments, python=python),
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            pass_fds=(theirs.fileno(), lifeline),
            env=child_environment(self._folder.name, environment),
            start_new_session=True,
        )
        theirs.close()
        os.close(lifeline)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def folder(self) -> Path:
        """Folder of its temporary files; removed with the child."""
        return Path(self._folder.name)

    def send_signal(self, number: int) -> None:
        """Send it a signal, e.g. ``SIGSTOP``; nothing happens when it has ended."""
        self._process.send_signal(number)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when there is something to receive."""
        return self._socket.fileno()

    def is_alive(self) -> bool:
        """Return whether it runs."""
        return self._process.poll() is None

    def is_readable(self, timeout_s: float = 0.0) -> bool:
        """Wait for at most so many seconds, and return whether there is something to receive."""
        return is_ready(self.fileno(), select.POLLIN, timeout_s)

    def send(self, message: object, limits: ChildLimits) -> None:
        """Send a message.

        Args:
            message: Anything that can be pickled.
            limits: For the child to take it.

        Raises:
            ChildError: The child is lost.
        """
        try:
            write_frame(self.fileno(), message, self._waiting(limits, time.monotonic()))
        except OSError:
            raise ChildCrashError(self.obituary()) from None

    def receive(self, limits: ChildLimits, since_s: float) -> Any:
        """Wait for a message and return it.

        Args:
            limits: For the message to arrive.
            since_s: When the time of the limits began, by ``time.monotonic``.

        Raises:
            ChildError: The child is lost.
        """
        try:
            return read_frame(self.fileno(), self._waiting(limits, since_s))
        except (EOFError, OSError):
            raise ChildCrashError(self.obituary()) from None
        except FrameError as error:
            raise ChildCrashError(f"{self.name} is damaged: {error}") from None

    def enforce(self, limits: ChildLimits, since_s: float) -> None:
        """Kill the child when it is over its limits.

        Raises:
            ChildTimeoutError, ChildMemoryError: It was killed.
        """
        try:
            limits.check(self.pid, since_s)
        except ChildError:
            self.kill()
            raise

    def memory_bytes(self) -> int:
        """Return its resident memory in bytes, that of what it has started included; 0 once it is dead."""
        return resident_bytes(self.pid)

    def obituary(self) -> str:
        """Return how a child ended that has closed its connection, and what it said last."""
        return describe_exit(self.name, self.exit_code(), self.said())

    def exit_code(self) -> int:
        """Return the exit code of a child that has closed its connection; one that does not end then is killed."""
        try:
            return self._process.wait(timeout=END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def said(self) -> str:
        """Return what it wrote last to its standard output and its standard error."""
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - SAID_BYTES))
        return last_words(self._said.read())

    def forget_said(self) -> None:
        """Drop what it wrote so far."""
        os.ftruncate(self._said.fileno(), 0)

    def kill(self) -> None:
        """End it, with what it has started, at once, and release what it held; harmless when that was done."""
        if self.fileno() < 0:
            return
        kill_group(self._process)
        self._socket.close()
        os.close(self._lifeline)
        self._said.close()
        self._folder.cleanup()

    def _waiting(self, limits: ChildLimits, since_s: float) -> Wait:
        """Return how to wait for the child to read or write on: within the limits."""

        def wait(descriptor: int, event: int) -> None:
            while not is_ready(descriptor, event, min(POLL_S, max(0.0, since_s + limits.timeout_s - time.monotonic()))):
                self.enforce(limits, since_s)

        return wait
