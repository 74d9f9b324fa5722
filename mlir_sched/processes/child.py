"""A child process that runs one of our modules and talks with this process in messages.

Neither Ctrl-C nor SIGTERM stops a child: its parent decides when the work ends. A child that takes more time or memory
than it may is killed, together with all processes that it started. When the parent dies, even by ``kill -9``, the
child's connection is closed, and so is its lifeline, a pipe whose other end the parent holds and never writes to.
"""

import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mlir_sched.processes.executable import SAID_BYTES, describe_exit, kill_group, last_words
from mlir_sched.processes.frames import FrameError, Wait, is_ready, read_frame, write_frame
from mlir_sched.processes.held_signals import termination_blocked
from mlir_sched.processes.limits import ChildError, ChildLimits, ChildStalledError, ChildTimeoutError
from mlir_sched.processes.memory import resident_bytes
from mlir_sched.processes.python_child import child_environment, python_command
from mlir_sched.processes.starvation import ProcessTimes
from mlir_sched.processes.temporary import temporary_folder

POLL_S = 0.1
"""Seconds between two looks at the memory of a child whose message is awaited; a look takes 50 us of another core."""
STOOD_STILL_S = 1.0
"""Seconds between two looks from which this process stood still itself: its container was paused, or it was swapped
out."""
END_S = 5.0
"""Seconds that a child may take to end after it closed its connection."""


class ChildCrashError(ChildError):
    """The child died, or wrote something that is not a message."""


class Child:
    """A running child process.

    The child's module finds the descriptor of its connection and that of its lifeline in ``sys.argv[1:3]``, and further
    arguments behind them. Both of its output streams are kept for :meth:`said`.

    Attributes:
        name: Name of the child in messages to the user, e.g. ``the runner process``.
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
            module: The child's main program, e.g. ``mlir_sched.runner.worker.server``.
            environment: Environment variables in addition to those of this process.
            arguments: Further arguments of the program, behind the descriptors.
            python: The child's interpreter; it need not have the packages that this process needs.

        Raises:
            OSError: No process can be started; nothing is left of the attempt.
        """
        self.name = name
        with ExitStack() as kept, ExitStack() as given:
            self._folder = temporary_folder()
            kept.callback(self._folder.cleanup)
            self._said = kept.enter_context(tempfile.TemporaryFile("a+b"))
            self._socket, theirs = socket.socketpair()
            kept.callback(self._socket.close)
            given.callback(theirs.close)
            self._socket.setblocking(False)
            lifeline, self._lifeline = os.pipe()
            kept.callback(os.close, self._lifeline)
            given.callback(os.close, lifeline)
            with termination_blocked():
                self._process = subprocess.Popen(
                    python_command(module, str(theirs.fileno()), str(lifeline), *arguments, python=python),
                    stdin=subprocess.DEVNULL,
                    stdout=self._said,
                    stderr=self._said,
                    pass_fds=(theirs.fileno(), lifeline),
                    env=child_environment(self._folder.name, environment),
                    start_new_session=True,
                )
            kept.pop_all()  # closed by kill()
        self._late: ProcessTimes | None = None  # when its message was first found to be late

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
        """Wait at most ``timeout_s`` seconds for something to receive, and return whether there is anything."""
        return is_ready(self.fileno(), select.POLLIN, timeout_s)

    def send(self, message: object, limits: ChildLimits) -> None:
        """Send a message.

        Args:
            limits: The child's limits until the message is sent.

        Raises:
            ChildError: The child is lost.
        """
        self._late = None
        try:
            write_frame(self.fileno(), message, self._waiting(limits, time.monotonic()))
        except OSError:
            raise ChildCrashError(self.obituary()) from None

    def receive(self, limits: ChildLimits, since_s: float) -> Any:
        """Wait for a message and return it.

        Args:
            limits: The child's limits until the message has arrived.
            since_s: When the time of the limits began, by ``time.monotonic``.

        Raises:
            ChildError: The child is lost.
        """
        try:
            message = read_frame(self.fileno(), self._waiting(limits, since_s))
        except (EOFError, OSError):
            raise ChildCrashError(self.obituary()) from None
        except FrameError as error:
            raise ChildCrashError(f"{self.name} is damaged: {error}") from None
        self._late = None
        return message

    def enforce(self, limits: ChildLimits, since_s: float) -> None:
        """Kill the child when it is over its limits.

        Raises:
            ChildTimeoutError, ChildMemoryError: It was killed.
        """
        if self._late is None and time.monotonic() - since_s >= POLL_S:  # reading takes as long as a short message
            self._late = ProcessTimes.of(self.pid)
        try:
            limits.check(self.pid, since_s)
        except ChildTimeoutError as error:
            times = ProcessTimes.of(self.pid)
            self.kill()
            late = self._late or times
            if times.is_starved(late) and not isinstance(error, ChildStalledError):
                waited_s = times.waited_s(late)
                raise ChildStalledError(f"{error}, of which it waited {waited_s:.1f} s for a processor") from None
            raise
        except ChildError:
            self.kill()
            raise

    def memory_bytes(self) -> int:
        """Return the resident bytes of the child and of all processes that it started; 0 once the child is dead."""
        return resident_bytes(self.pid)

    def obituary(self) -> str:
        """Return how a child that has closed its connection ended, and the last that it wrote."""
        return describe_exit(self.name, self.exit_code(), self.said())

    def exit_code(self) -> int:
        """Return the exit code of a child that has closed its connection; kill it after :data:`END_S`."""
        try:
            return self._process.wait(timeout=END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def said(self) -> str:
        """Return the end of what the child wrote to its standard output and its standard error."""
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - SAID_BYTES))
        return last_words(self._said.read())

    def forget_said(self) -> None:
        """Drop what the child has written so far."""
        os.ftruncate(self._said.fileno(), 0)

    def kill(self) -> None:
        """Kill the child with all that it started, and release its resources; a second call does nothing."""
        if self.fileno() < 0:
            return
        kill_group(self._process)
        self._socket.close()
        os.close(self._lifeline)
        self._said.close()
        self._folder.cleanup()

    def _waiting(self, limits: ChildLimits, since_s: float) -> Wait:
        """Return a function that waits until the child reads or writes on, and enforces the limits meanwhile."""

        def wait(descriptor: int, event: int) -> None:
            looked_s, lost_s = time.monotonic(), 0.0
            while not is_ready(descriptor, event, min(POLL_S, max(0.0, since_s + limits.timeout_s - time.monotonic()))):
                lost_s = max(lost_s, time.monotonic() - looked_s)
                looked_s = time.monotonic()
                try:
                    self.enforce(limits, since_s)
                except ChildTimeoutError as error:
                    if lost_s < STOOD_STILL_S:
                        raise
                    raise ChildStalledError(f"{error}, of which this machine stood still for {lost_s:.1f} s") from None

        return wait
