"""The end of a search before its time: what was found until then is the result.

The user ends a search by Ctrl-C or a callback that raises, and the machine where it fails too often in a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType

from mlir_sched.compiler.reasons import reason
from mlir_sched.database.engine import StoreOutageError
from mlir_sched.errors import EnvironmentFailureError, EnvironmentStopError, MlirSchedError
from mlir_sched.processes.shortage import SHORT
from mlir_sched.tuning.callbacks import CallbackError
from mlir_sched.tuning.run_clock import RunClock


@dataclass
class Interruption:
    """The end of a block of code that the user, a callback or the machine's failures stop; a context manager.

    Attributes:
        clock: The run's clock, which is saved then.
        happened: Whether the user interrupted the block.
        stopped: Why a callback or the machine's failures stopped the block; empty when they did not.
    """

    clock: RunClock
    happened: bool = False
    stopped: str = ""

    def __enter__(self) -> Interruption:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.happened = isinstance(error, KeyboardInterrupt)
        self.stopped = _stop(error)
        if self.early:
            self.clock.store.wait_for_locks(0.0)
            with suppress(StoreOutageError):
                self.clock.save()
        return self.early

    @property
    def early(self) -> bool:
        """Whether the block ended before its time."""
        return self.happened or bool(self.stopped)

    @contextmanager
    def emitting(self) -> Iterator[None]:
        """Emit what a search found: after the machine's failures stopped that, an error here is one of them.

        Raises:
            EnvironmentStopError: The search was stopped, and nothing can be emitted either.
        """
        try:
            yield
        except (MlirSchedError, OSError, MemoryError) as error:
            if not self.stopped:
                raise
            why = reason(str(error)) or type(error).__name__
            raise EnvironmentStopError(f"{self.stopped}; nothing could be emitted: {why}") from error


def _stop(error: BaseException | None) -> str:
    """Return why an error of the machine or of a callback ends a search; empty for any other error."""
    if isinstance(error, EnvironmentStopError | CallbackError):
        return str(error)
    if isinstance(error, StoreOutageError):
        return f"{error}; what was stored is kept, and the same command goes on"
    short = isinstance(error, OSError) and error.errno in SHORT
    if short or isinstance(error, EnvironmentFailureError | MemoryError):
        return f"this machine fails ({reason(str(error))}): what was measured is kept, and the same command goes on"
    return ""
