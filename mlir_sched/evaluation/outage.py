"""Failures of the machine: how they are told from others, a pause after each, and the end after too many in a row."""

import time
from dataclasses import dataclass

from mlir_sched.errors import EnvironmentFailureError, EnvironmentStopError, Failure, FailureClass, FailureOrigin
from mlir_sched.processes.shortage import says_shortage, shortage

MOST_FAILURES = 8
"""Failures in a row after which the search stops."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 8.0
"""Seconds of the first pause, and of the longest: each pause is twice as long as the one before. All pauses before the
search stops take half a minute, in which a short shortage of memory or space passes."""
OF_ENVIRONMENT = (EnvironmentFailureError, OSError, MemoryError)
"""Exceptions of an evaluator for which the machine is to blame."""


@dataclass
class Outage:
    """The failures of the machine in a row, none at first.

    Attributes:
        failures: How many there were since the last success.
    """

    failures: int = 0

    def failed(self, why: str) -> None:
        """Count a failure, and wait before the next try.

        Raises:
            EnvironmentStopError: There were too many.
        """
        self.failures += 1
        if self.failures >= MOST_FAILURES:
            short = shortage()
            raise EnvironmentStopError(
                f"this machine failed {self.failures} times in a row ({f'{short}; ' if short else ''}{why}): what was "
                "measured is kept, and the same command goes on from there"
            )
        time.sleep(min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (self.failures - 1)))

    def succeeded(self) -> None:
        """End the row."""
        self.failures = 0


def is_of_environment(failure: Failure) -> bool:
    """Say whether a failure shows by itself that the machine is to blame."""
    return failure.origin is FailureOrigin.ENVIRONMENT or says_shortage(failure.message)


def may_be_of_environment(failure: Failure) -> bool:
    """Say whether the machine may be to blame for a failure: a crash, a limit that was passed, an error of a run."""
    own_mistake = failure.kind is FailureClass.INTERNAL_ERROR
    return is_of_environment(failure) or not (failure.kind.is_lasting or own_mistake)
