"""The exceptions of mlir-sched and the classes a failed candidate is recorded under.

A caller's mistake is an exception; a candidate that fails is a value (:class:`Failure`) and never ends a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class MlirSchedError(Exception):
    """Base of every exception that mlir-sched raises on purpose."""


class UserError(MlirSchedError):
    """The caller's input is at fault: the message says what, where and what to do next (exit code 2)."""


class UnusablePathError(UserError):
    """IREE cannot be told a path that the user chose, so that nothing which needs the path can work.

    Attributes:
        why: What IREE does not take.
    """

    def __init__(self, folder: object, why: str) -> None:
        super().__init__(f"{folder}: {why}; choose another folder")
        self.folder, self.why = folder, why

    def __reduce__(self) -> tuple[type[UnusablePathError], tuple[object, str]]:
        return UnusablePathError, (self.folder, self.why)


class IllegalTraceError(MlirSchedError):
    """The decisions of a trace break a rule of the design space; the message names the rule and the values."""


class ScriptError(MlirSchedError):
    """A transform script cannot be parsed, is not the one its decisions produce, or does not apply."""


class CompilerError(MlirSchedError):
    """IREE rejects a program, or one of its passes fails on it; the message is the compiler's diagnostics."""


class EnvironmentFailureError(MlirSchedError):
    """The machine fails at present: a process does not start or stalls, memory or space is short."""


class EnvironmentStopError(MlirSchedError):
    """The machine failed so often in a row that a search has to stop; what was measured is kept (exit code 1)."""


class ScheduleError(Exception):
    """A schedule program calls a verb that cannot follow the verbs before it: a mistake of the module's author.

    It is no :class:`MlirSchedError`: as any other exception of a module, it becomes a :class:`UserError` with the
    module's name and the line where the module called the verb.
    """


class FailureClass(StrEnum):
    """Why a candidate has no valid measurement; the value is what the record store keeps."""

    ILLEGAL_TRACE = "illegal_trace"
    """The decisions break a rule of the design space."""
    SCRIPT_ERROR = "script_error"
    """The script does not parse, does not apply, or leaves invalid code."""
    NOT_APPLIED = "not_applied"
    """There is no proof that the script took effect to its end and that the compiler kept what it did."""
    DATA_RACE = "data_race"
    """Threads read what others write at the same time, or copies overtake their buffers."""
    COMPILE_ERROR = "compile_error"
    """The compiler refuses the code that the script makes."""
    COMPILE_TIMEOUT = "compile_timeout"
    """Compiling took longer than its limit."""
    COMPILE_CRASH = "compile_crash"
    """The compiler's process died."""
    COMPILE_MEMORY = "compile_memory"
    """Compiling needed more memory than its limit."""
    ASSEMBLY_ERROR = "assembly_error"
    """The device's assembler refuses the code or warns about it, or no model can read the code."""
    RUN_ERROR = "run_error"
    """A call of the program raised an error."""
    RUN_TIMEOUT = "run_timeout"
    """A call of the program took longer than its limit."""
    RUN_CRASH = "run_crash"
    """The process that runs the program died."""
    RUN_MEMORY = "run_memory"
    """Running the program needed more memory than its limit."""
    WRONG_RESULT = "wrong_result"
    """The numbers differ from the untuned code's by more than rounding explains."""
    INTERNAL_ERROR = "internal_error"
    """A mistake of mlir-sched, not of the candidate."""

    @property
    def is_lasting(self) -> bool:
        """Whether the script is to blame, so that another try ends the same.

        A crash, a run that raises or a limit that was passed may come from the machine at that moment.
        """
        return self in LASTING


LASTING = (
    FailureClass.ILLEGAL_TRACE,
    FailureClass.SCRIPT_ERROR,
    FailureClass.NOT_APPLIED,
    FailureClass.DATA_RACE,
    FailureClass.COMPILE_ERROR,
    FailureClass.ASSEMBLY_ERROR,
    FailureClass.WRONG_RESULT,
)
"""The classes of failures that are properties of a script (:attr:`FailureClass.is_lasting`)."""


class FailureOrigin(StrEnum):
    """What is to blame for a failure; only the failures of candidates are outcomes, and are stored."""

    ENVIRONMENT = "environment"
    """The machine at that moment."""
    UNTUNED = "untuned"
    """The untuned code that candidates are compared with."""
    CANDIDATE = "candidate"
    """The candidate itself."""


@dataclass(frozen=True)
class Failure:
    """One candidate's failure.

    Attributes:
        origin: What is to blame.
    """

    kind: FailureClass
    message: str
    origin: FailureOrigin = FailureOrigin.CANDIDATE

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"
