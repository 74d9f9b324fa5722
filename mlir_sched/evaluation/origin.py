"""What the class and the text of a failure say of its origin."""

from __future__ import annotations

from mlir_sched.errors import Failure, FailureClass, FailureOrigin
from mlir_sched.processes.shortage import says_shortage


def is_of_environment(failure: Failure) -> bool:
    """Say whether a failure shows by itself that the machine is to blame."""
    return failure.origin is FailureOrigin.ENVIRONMENT or says_shortage(failure.message)


def is_doubtful(failure: Failure) -> bool:
    """Say whether the machine may be to blame for a failure: a crash, a limit that was passed, an error of a run."""
    own_mistake = failure.kind is FailureClass.INTERNAL_ERROR
    return is_of_environment(failure) or not (failure.kind.is_lasting or own_mistake)
