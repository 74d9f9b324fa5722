"""The exceptions of mlir-sched and the classes a failed candidate is recorded under.

A caller's mistake is an exception; a candidate that fails is a value (:class:`Failure`) and never ends a run.
"""

from dataclasses import dataclass
from enum import StrEnum


class MlirSchedError(Exception):
    """Base of every exception that mlir-sched raises on purpose."""


class UserError(MlirSchedError):
    """The caller's input is at fault: the message says what, where and what to do next (exit code 2)."""


class IllegalTraceError(MlirSchedError):
    """The decisions of a trace break a rule of the design space; the message names the rule and the values."""


class ScriptError(MlirSchedError):
    """A transform script cannot be parsed, is not the one its decisions produce, or does not apply."""


class ScheduleError(Exception):
    """A schedule program calls a verb that cannot follow the verbs before it: a mistake of the module's author.

    It is no :class:`MlirSchedError`: as any other exception of a module, it becomes a :class:`UserError` with the
    module's name and the line where the module called the verb.
    """


class FailureClass(StrEnum):
    """Why a candidate has no valid measurement; the value is what the record store keeps.

    ``INTERNAL_ERROR`` is a mistake of mlir-sched, not of the candidate.
    """

    ILLEGAL_TRACE = "illegal_trace"
    SCRIPT_ERROR = "script_error"
    NOT_APPLIED = "not_applied"
    DATA_RACE = "data_race"
    COMPILE_ERROR = "compile_error"
    COMPILE_TIMEOUT = "compile_timeout"
    COMPILE_CRASH = "compile_crash"
    COMPILE_MEMORY = "compile_memory"
    ASSEMBLY_ERROR = "assembly_error"
    RUN_ERROR = "run_error"
    RUN_TIMEOUT = "run_timeout"
    RUN_CRASH = "run_crash"
    RUN_MEMORY = "run_memory"
    WRONG_RESULT = "wrong_result"
    INTERNAL_ERROR = "internal_error"

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


@dataclass(frozen=True)
class Failure:
    """One candidate's failure: its class and the text that explains it."""

    kind: FailureClass
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"
