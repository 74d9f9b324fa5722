"""The result of compiling one candidate."""

from dataclasses import dataclass
from math import prod

from mlir_sched.errors import Failure, FailureClass, FailureOrigin


@dataclass(frozen=True)
class Launch:
    """How a device with threads launches a dispatch.

    Attributes:
        grid: Number of workgroups along x, y and z.
        workgroup_size: Threads of a workgroup along x, y and z.
        shared_memory_bytes: Shared memory of a workgroup.
    """

    grid: tuple[int, int, int]
    workgroup_size: tuple[int, int, int]
    shared_memory_bytes: int

    @property
    def workgroups(self) -> int:
        """Number of workgroups."""
        return prod(self.grid)

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return prod(self.workgroup_size)


@dataclass(frozen=True)
class CompileResult:
    """A compiled program or a failure, never both.

    Attributes:
        vmfb: The compiled program; None when compiling failed.
        failure: Why compiling failed; None when it did not.
        binary_hash: Hash of host and device code; equal for candidates that give equal code. Empty after a failure.
        seconds: Wall-clock time of compiling the candidate, without waiting for a free worker.
        code: Digest of the dispatch's code as IREE is about to lower it (``code_digest.py``); empty after a failure.
        launch: How a device with threads launches the dispatch; None on any other, where it depends on values, and
            where there are several dispatches.
    """

    vmfb: bytes | None
    failure: Failure | None
    binary_hash: str
    seconds: float
    code: str = ""
    launch: Launch | None = None


def failed(
    kind: FailureClass, message: str, seconds: float, origin: FailureOrigin = FailureOrigin.CANDIDATE
) -> CompileResult:
    """Return the result of a candidate that failed."""
    return CompileResult(None, Failure(kind, message, origin), "", seconds)
