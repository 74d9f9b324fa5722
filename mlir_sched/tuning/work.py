"""The work that a search hands out: code of one task to evaluate, before the search can go on."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mlir_sched.database.record import Record
from mlir_sched.errors import Failure, FailureClass, UserError
from mlir_sched.outcome import Outcome, Timing
from mlir_sched.tasks.task import Task
from mlir_sched.tuning.evaluator import Anticipating, Estimator, Evaluator, UntunedError
from mlir_sched.tuning.lookahead import Lookahead
from mlir_sched.tuning.task_records import Candidate, TaskRecords


class Work(Protocol):
    """Code of one task that is to be evaluated; its outcomes are stored, and read by the search that handed it out."""

    def run(self, evaluator: Evaluator) -> None:
        """Evaluate the code and store every outcome as soon as it is known.

        Raises:
            UserError, OSError: No task can be evaluated. Any other exception of the evaluator becomes an outcome.
        """


@dataclass
class UntunedWork:
    """The untuned code of a task.

    Attributes:
        task: The task.
        stored: Its records in the store.
        following: The tasks whose untuned code is evaluated next, in their order.
        timing: Timing of the untuned code; None before it was run, or when it failed.
        error: Why the untuned code has no timing.
    """

    task: Task
    stored: TaskRecords
    following: Sequence[Task] = ()
    timing: Timing | None = None
    error: UntunedError | None = None

    def run(self, evaluator: Evaluator) -> None:
        """Measure the untuned code and store its timing."""
        try:
            outcome = evaluator.untuned(self.task, self.following)
        except UntunedError as error:
            self.error = error
        except (UserError, OSError):
            raise
        except Exception as error:
            self.error = UntunedError(f"its untuned code meets an internal error: {type(error).__name__}")
            self.error.__cause__ = error
        else:
            self.timing = self.stored.settle_untuned(outcome)


@dataclass
class EstimateWork:
    """Scripts of a task whose times are estimated, to choose those that are worth measuring.

    Attributes:
        task: The task.
        scripts: The scripts.
        seconds: Estimated seconds per call of every script; None where there is no estimate.
        internal_errors: The traceback of an exception for which there is no estimate at all.
    """

    task: Task
    scripts: Sequence[str]
    seconds: list[float | None] = field(default_factory=list)
    internal_errors: tuple[str, ...] = ()

    def run(self, evaluator: Evaluator) -> None:
        """Estimate the times; without an estimator, or after an exception, there are none."""
        self.seconds = [None] * len(self.scripts)
        if not isinstance(evaluator, Estimator):
            return
        try:
            self.seconds = evaluator.estimates(self.task, self.scripts)
        except (UserError, OSError):
            raise
        except Exception as error:
            self.internal_errors = ("".join(traceback.format_exception(error)),)


@dataclass
class CandidateWork:
    """New candidates of a task.

    Attributes:
        task: The task.
        candidates: The candidates, in the order in which they were suggested.
        known: Outcomes by binary hash; a candidate that compiles to one of these binaries is not run again.
        stored: The task's records in the store.
        round: The round that the candidates belong to, from 0.
        lookahead: Says what follows the candidates.
        records: The records of candidates whose outcome is known by now.
    """

    task: Task
    candidates: Sequence[Candidate]
    known: Mapping[str, Outcome]
    stored: TaskRecords
    round: int
    lookahead: Lookahead = field(default_factory=Lookahead)
    records: list[Record] = field(default_factory=list)

    def run(self, evaluator: Evaluator) -> None:
        """Evaluate the candidates; an exception of the evaluator is the failure of all that have no outcome yet."""
        for candidate in self.candidates:
            if candidate.problem:
                self._settle([candidate], Failure(FailureClass.ILLEGAL_TRACE, candidate.problem))
        missing = dict(enumerate(candidate for candidate in self.candidates if not candidate.problem))
        scripts = [candidate.script for candidate in missing.values()]
        if scripts and isinstance(evaluator, Anticipating):
            evaluator.anticipate(self.lookahead)
        try:
            for index, outcome in evaluator.evaluate(self.task, scripts, self.known) if scripts else ():
                self.records.append(self.stored.settle(missing[index], outcome, self.round))
                del missing[index]
        except (UserError, OSError):
            raise
        except Exception as error:
            self._settle(
                missing.values(), Failure(FailureClass.INTERNAL_ERROR, "".join(traceback.format_exception(error)))
            )

    def _settle(self, candidates: Iterable[Candidate], failure: Failure) -> None:
        for candidate in candidates:
            self.records.append(self.stored.settle(candidate, Outcome(None, failure), self.round))
