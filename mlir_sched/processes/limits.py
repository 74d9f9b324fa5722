"""The time and the memory that a child process may take."""

import time
from contextlib import suppress
from dataclasses import dataclass

import psutil

from mlir_sched.errors import MlirSchedError
from mlir_sched.processes.memory import mebibytes, resident_bytes


class ChildError(MlirSchedError):
    """The child is lost; the message says how."""


class ChildTimeoutError(ChildError):
    """The child took more time than it may, and was killed."""


class ChildStalledError(ChildTimeoutError):
    """The child, or this process with it, stood still or got no processor: the time says nothing of its work."""


class ChildMemoryError(ChildError):
    """The child took more memory than it may, and was killed."""


@dataclass(frozen=True)
class ChildLimits:
    """The limits of a child, or of one message to it and its answer.

    Attributes:
        timeout_s: Seconds, > 0.
        memory_bytes: Resident memory in bytes, including that of the processes that the child starts.
    """

    timeout_s: float
    memory_bytes: int

    def check(self, process: int, since_s: float) -> None:
        """Check a running child against the limits.

        Args:
            since_s: When its time began, by ``time.monotonic``.

        Raises:
            ChildTimeoutError, ChildMemoryError: The child is over a limit; the caller has to kill it.
        """
        if time.monotonic() - since_s >= self.timeout_s:
            if _is_stopped(process):
                raise ChildStalledError(f"stopped after {self.timeout_s:.4g} s, in which a signal kept it from running")
            raise ChildTimeoutError(f"stopped after {self.timeout_s:.4g} s")
        if resident_bytes(process) > self.memory_bytes:
            raise ChildMemoryError(f"stopped: it used more than {mebibytes(self.memory_bytes)} of memory")


def _is_stopped(process: int) -> bool:
    """Say whether a signal (``SIGSTOP``, a debugger) keeps a process from running."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(process).status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
    return False
