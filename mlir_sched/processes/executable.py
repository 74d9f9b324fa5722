"""Runs an executable that is not ours to its end: in a session of its own, with limits, tied to this process.

Beside that, what is said of a process that ended on its own.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from mlir_sched.processes.held_signals import termination_blocked
from mlir_sched.processes.limits import ChildLimits
from mlir_sched.processes.python_child import child_environment
from mlir_sched.processes.temporary import temporary_folder

POLL_S = 0.05
"""Seconds between two looks at a running program's deadline and memory."""
Watch: TypeAlias = Callable[[int], Callable[[], None]]
"""Gets the process id of a program that was started, and returns what is called at every look at it."""
_LAUNCHER = Path(__file__).resolve().parent / "launch_program.py"
SAID_BYTES = 600
"""Bytes of a dead process's last output that the message about its end keeps."""


@dataclass(frozen=True)
class Ended:
    """How a program ended.

    Attributes:
        code: Its exit code; negative is the signal that killed it.
        output, errors: What it wrote to the standard output and to the standard error.
    """

    code: int
    output: bytes
    errors: bytes


@contextmanager
def running_program(
    command: Sequence[str],
    limits: ChildLimits,
    environment: Mapping[str, str] | None = None,
    *,
    watch: Watch | None = None,
    poll_s: float = POLL_S,
) -> Iterator[Callable[[], Ended]]:
    """Start a program, and yield a function that waits for its end and returns how it ended.

    Neither Ctrl-C nor SIGTERM stops the program. It is killed with all that it started when the context is left before
    its end; the kernel kills the program itself when this process or the calling thread dies. Its temporary files are
    removed.

    Args:
        limits: The time and the memory that the program may take, looked at while it is waited for. The time counts
            from the start.
        environment: Environment variables in addition to those of this process.
        poll_s: Seconds between two looks.

    Raises:
        ChildTimeoutError, ChildMemoryError: By the function: the program went over a limit; the context then kills it.
    """
    since_s = time.monotonic()
    launcher = [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid())]
    with temporary_folder() as folder:
        with termination_blocked():
            process = subprocess.Popen(
                [*launcher, *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=child_environment(folder, environment),
                start_new_session=True,
            )

        def wait() -> Ended:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    output, errors = process.communicate(timeout=poll_s)
                    return Ended(process.returncode, output, errors)
                limits.check(process.pid, since_s)
                if look is not None:
                    look()

        try:
            look = watch(process.pid) if watch else None
            yield wait
        finally:
            if process.returncode is None:
                kill_group(process)


def run_program(
    command: Sequence[str],
    limits: ChildLimits,
    environment: Mapping[str, str] | None = None,
    *,
    watch: Watch | None = None,
    poll_s: float = POLL_S,
) -> Ended:
    """Run a program to its end and return how it ended; arguments and errors are those of :func:`running_program`."""
    with running_program(command, limits, environment, watch=watch, poll_s=poll_s) as wait:
        return wait()


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a child that leads a session, with all that it started, and close its pipes; harmless when it has ended."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def describe_exit(name: str, code: int, said: str) -> str:
    """Return how a process ended and what it said last.

    Args:
        name: What the process is, e.g. ``the runner process``.
        code: Its exit code; negative is the signal that killed it.
    """
    how = f"was killed by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
    return f"{name} {how}" + (f"; it said: {said}" if said else "")


def last_words(written: bytes) -> str:
    """Return the end of what a process wrote, as text."""
    return written[-SAID_BYTES:].decode(errors="replace").strip()


def signal_name(number: int) -> str:
    """Return the name of a signal, e.g. ``SIGSEGV``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
