"""Callbacks of a tuning run, which hear of every outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from mlir_sched.errors import MlirSchedError
from mlir_sched.evaluation.work import CandidateWork, Work
from mlir_sched.outcome import Outcome
from mlir_sched.plugins import origin_of
from mlir_sched.trace import Trace
from mlir_sched.tuning.program_search import ProgramSearch


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


def told(
    works: Iterable[tuple[ProgramSearch, Work]], callbacks: Sequence[Callback]
) -> Iterator[tuple[ProgramSearch, Work]]:
    """Yield the work of a search, and tell callbacks the outcomes once the search has learnt from them.

    Outcomes that the store had before are not told.

    Args:
        works: The work, each with the search that hands it out; it is to be run before the next is asked for.
        callbacks: The callbacks, which are called in their order.

    Raises:
        CallbackError: A callback raised.
    """
    trials: list[Trial] = []
    for program, work in works:
        _call(callbacks, trials)
        yield program, work
        trials = _trials(program.name, work) if isinstance(work, CandidateWork) else []
    _call(callbacks, trials)


def _trials(program: str, work: CandidateWork) -> list[Trial]:
    task = work.task
    return [
        Trial(task.name, task.key, program, work.round, record.trace, record.script, record.outcome)
        for record in work.records
        if record.trace is not None
    ]


def _call(callbacks: Sequence[Callback], trials: Iterable[Trial]) -> None:
    for trial, callback in product(trials, callbacks):
        try:
            callback(trial)
        except Exception as error:
            file, line = origin_of(error)
            raise CallbackError(
                f"a callback raised {type(error).__name__}: {error} ({file}:{line}); "
                "what was measured is kept, and the same call goes on"
            ) from error
