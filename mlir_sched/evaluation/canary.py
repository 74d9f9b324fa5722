"""The origin of failures: the machine, the untuned code or the candidate.

Where neither the class nor the text of a failure says whether the machine is to blame (a crash, a limit that was
passed), the untuned code is compiled and run the same way, as a canary: where that fails, too, the machine is to blame.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mlir_sched.compiler.reasons import reason
from mlir_sched.errors import Failure, FailureClass, FailureOrigin
from mlir_sched.evaluation.evaluator import Evaluator, UntunedError
from mlir_sched.evaluation.outage import OF_ENVIRONMENT, Outage, is_of_environment
from mlir_sched.processes.shortage import says_shortage, shortage
from mlir_sched.runner import BaselineError, UnverifiableError
from mlir_sched.tasks.task import Task

OF_UNTUNED = (BaselineError, UntunedError)
"""Exceptions of an evaluator for which the untuned code is to blame, unless the machine is short of something."""


@dataclass
class Judge:
    """Finds out what is to blame for the failures of one piece of work, and waits while the machine fails."""

    evaluator: Evaluator
    task: Task
    _outage: Outage = field(default_factory=Outage)
    _untuned_failed: bool = False
    _suspects: set[int] = field(default_factory=set)

    def succeeded(self) -> None:
        """Hear that something has an outcome."""
        self._outage.succeeded()

    def raised(self, error: Exception) -> None:
        """Return where the work is to be tried again after an exception of the evaluator, in new processes.

        Raises:
            EnvironmentStopError: The machine failed too often in a row.
            Exception: The exception as it is: the untuned code failed for the second time, or none of both is to blame.
        """
        text = f"{type(error).__name__}: {error}" if isinstance(error, OSError | MemoryError) else str(error)
        of_untuned = isinstance(error, OF_UNTUNED) and not _lasts(error)
        if isinstance(error, OF_ENVIRONMENT) or (of_untuned and (says_shortage(text) or shortage())):
            self._wait(reason(text))
        elif of_untuned and not self._untuned_failed:
            self._untuned_failed = True
            self.evaluator.renew()
        else:
            raise error

    def of_candidates(self, failed: Mapping[int, Failure]) -> set[int]:
        """Return which of the doubtful failures are the candidates', by index; the others are to be tried again.

        A failure that shows by itself that the machine is to blame is the candidate's, too, once it comes for the
        second time while the canary does not fail.

        Raises:
            EnvironmentStopError: The machine failed too often in a row.
        """
        certain = {index for index, failure in failed.items() if is_of_environment(failure)}
        if self._machine_failed():
            return set()
        again = certain - self._suspects
        self._suspects |= certain
        if again:
            self._wait(reason(str(failed[min(again)])))
        return failed.keys() - again

    def _machine_failed(self) -> bool:
        """Say whether the canary failed; return once the canary does not fail any more."""
        failed = False
        while (why := self._failure_of_canary()) is not None:
            failed = True
            self._wait(f"the untuned code fails, too: {reason(str(why))}")
        return failed

    def _failure_of_canary(self) -> Failure | None:
        try:
            return self.evaluator.canary(self.task)
        except OF_ENVIRONMENT as error:
            return Failure(FailureClass.RUN_ERROR, f"{type(error).__name__}: {error}", FailureOrigin.ENVIRONMENT)

    def _wait(self, why: str) -> None:
        self._outage.failed(why)
        self.evaluator.renew()


def _lasts(error: Exception) -> bool:
    """Say whether an error of the untuned code is a property of the code, so that another try ends the same."""
    return isinstance(error, UnverifiableError) or (isinstance(error, UntunedError) and error.is_lasting)
