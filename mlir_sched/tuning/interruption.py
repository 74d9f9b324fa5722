"""Ctrl-C while a search runs: the search ends, and what was found until then is the result."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType

from mlir_sched.tuning.run_clock import RunClock


@dataclass
class Interruption:
    """The end of a block of code where the user interrupts it; a context manager.

    Attributes:
        clock: The run's clock, which is saved then.
        happened: Whether the user interrupted the block.
    """

    clock: RunClock
    happened: bool = False

    def __enter__(self) -> Interruption:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.happened = isinstance(error, KeyboardInterrupt)
        if self.happened:
            self.clock.save()
        return self.happened
