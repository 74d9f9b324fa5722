"""Callbacks, which hear of every outcome, and the end of a search before its time: what was found until then stays.

The user ends a search by Ctrl-C or a callback that raises, and the machine where it fails too often in a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import product
from types import TracebackType
from typing import TypeAlias

from mlir_sched.compiler.reasons import reason
from mlir_sched.database.engine import StoreOutageError
from mlir_sched.errors import EnvironmentFailureError, EnvironmentStopError, MlirSchedError
from mlir_sched.evaluation.work import CandidateWork, Work
from mlir_sched.outcome import Outcome
from mlir_sched.plugins import origin_of
from mlir_sched.processes.shortage import SHORT
from mlir_sched.trace import Trace
from mlir_sched.tuning.program_search import ProgramSearch
from mlir_sched.tuning.tuning_run import RunClock


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


def with_callbacks(
    works: Iterable[tuple[ProgramSearch, Work]], callbacks: Sequence[Callback]
) -> Iterator[tuple[ProgramSearch, Work]]:
    """Yield the work of a search, and tell callbacks the outcomes once the search has learnt from them.

    Outcomes that the store had before are not told.

    Args:
        works: The work, each with the search that hands it out; it is to be run before the next is asked for.

    Raises:
        CallbackError: A callback raised.
    """
    trials: list[Trial] = []
    for program, work in works:
        _call(callbacks, trials)
        yield program, work
        trials = _trials(program.name, work) if isinstance(work, CandidateWork) else []
    _call(callbacks, trials)


@dataclass
class Interruption:
    """The end of a block of code that the user, a callback or the machine's failures stop; a context manager.

    Attributes:
        clock: The run's clock, which is saved then.
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
