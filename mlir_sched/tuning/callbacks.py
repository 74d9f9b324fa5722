"""Callbacks of a tuning run, which hear of every outcome."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mlir_sched.errors import MlirSchedError
from mlir_sched.evaluation.work import CandidateWork, Work
from mlir_sched.outcome import Outcome
from mlir_sched.trace import Trace


@dataclass(frozen=True)
class Trial:
    """A candidate with its outcome.

    Attributes:
        dispatch: Name of the dispatch.
        task_key: Key of the task in the store.
        program: Name of the program variant that is searched.
        round: Round of the task, from 0.
        trace: The candidate's decisions.
        script: Its transform script; empty where the trace is not legal.
        outcome: Its timing, with the speed-up over the untuned code (``timing.ratio``), or its failure.
    """

    dispatch: str
    task_key: str
    program: str
    round: int
    trace: Trace
    script: str
    outcome: Outcome


Callback: TypeAlias = Callable[[Trial], None]
"""Hears of a trial once its outcome is stored; an exception ends the run, which keeps and emits what it has."""


class CallbackError(MlirSchedError):
    """A callback raised."""


def tell(callbacks: Sequence[Callback], program: str, work: Work) -> None:
    """Tell callbacks the outcomes of work that was run; outcomes that the store had before are not told.

    Args:
        callbacks: The callbacks, which are called in their order.
        program: Name of the program variant.
        work: The work.

    Raises:
        CallbackError: A callback raised.
    """
    if not isinstance(work, CandidateWork):
        return
    for record in work.records:
        if record.trace is not None:
            trial = Trial(
                work.task.name, work.task.key, program, work.round, record.trace, record.script, record.outcome
            )
            _call(callbacks, trial)


def _call(callbacks: Sequence[Callback], trial: Trial) -> None:
    for callback in callbacks:
        try:
            callback(trial)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            raise CallbackError(
                f"a callback raised {type(error).__name__}: {error} ({frame.filename}:{frame.lineno}); "
                "what was measured is kept, and the same call goes on"
            ) from error
