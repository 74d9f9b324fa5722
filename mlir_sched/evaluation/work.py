"""The work that a search hands out: code of one task to evaluate, before the search can go on."""

import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from mlir_sched.compiler.reasons import reason
from mlir_sched.database.engine import StoreOutageError
from mlir_sched.database.record import Record
from mlir_sched.database.work_cost import WorkKind
from mlir_sched.errors import EnvironmentStopError, Failure, FailureClass, UserError
from mlir_sched.evaluation.canary import OF_UNTUNED, Judge
from mlir_sched.evaluation.evaluator import Evaluator, UntunedError
from mlir_sched.evaluation.lookahead import Lookahead
from mlir_sched.evaluation.outage import Outage, may_be_of_environment
from mlir_sched.evaluation.task_records import Candidate, TaskRecords
from mlir_sched.outcome import Outcome, Timing
from mlir_sched.tasks.task import Task


class Work(Protocol):
    """Code of one task that is to be evaluated; its outcomes are stored, and read by the search that handed it out.

    A search goes on once the work that it yielded was run.
    """

    kind: ClassVar[WorkKind]

    @property
    def task(self) -> Task:
        """The task."""

    @property
    def count(self) -> int:
        """How many programs are evaluated."""

    def run(self, evaluator: Evaluator) -> None:
        """Evaluate the code and store every outcome as soon as it is known.

        What fails because of the machine is tried again, and what fails with the untuned code once.

        Raises:
            UserError: No task can be evaluated. Any other exception of the evaluator becomes an outcome.
            EnvironmentStopError: The machine failed too often in a row.
        """

    def measured(self) -> Sequence[Record]:
        """Return the records of what was run, as stored, that of the untuned code first."""


@dataclass
class UntunedWork:
    """The untuned code of a task.

    Attributes:
        following: The tasks whose untuned code is evaluated next, in their order.
        timing: Timing of the untuned code; None before it was run, or when it failed.
        error: Why the untuned code has no timing.
    """

    task: Task
    stored: TaskRecords
    following: Sequence[Task] = ()
    timing: Timing | None = None
    error: UntunedError | None = None
    kind: ClassVar[WorkKind] = WorkKind.UNTUNED

    @property
    def count(self) -> int:
        """One program."""
        return 1

    def measured(self) -> Sequence[Record]:
        """Return the record of the untuned code; none where it has no timing."""
        return self.stored.with_untuned(())

    def run(self, evaluator: Evaluator) -> None:
        """Measure the untuned code and store its timing."""
        judge = Judge(evaluator, self.task)
        while self.timing is None and self.error is None:
            try:
                self._try(evaluator, judge)
            except UntunedError as error:
                self.error = error
            except (UserError, EnvironmentStopError):
                raise
            except Exception as error:
                self.error = UntunedError(f"its untuned code meets an internal error: {type(error).__name__}")
                self.error.__cause__ = error

    def _try(self, evaluator: Evaluator, judge: Judge) -> None:
        try:
            outcome = evaluator.untuned(self.task, self.following)
        except Exception as error:
            judge.raised(error)
        else:
            self.timing = self.stored.settle_untuned(outcome)


@dataclass
class EstimateWork:
    """Scripts of a task whose times are estimated, to choose those that are worth measuring.

    Attributes:
        seconds: Estimated seconds per call of every script; None where there is no estimate.
        internal_errors: The traceback of an exception for which there is no estimate at all.
    """

    task: Task
    scripts: Sequence[str]
    seconds: list[float | None] = field(default_factory=list)
    internal_errors: tuple[str, ...] = ()
    kind: ClassVar[WorkKind] = WorkKind.ESTIMATE

    @property
    def count(self) -> int:
        """How many scripts there are."""
        return len(self.scripts)

    def measured(self) -> Sequence[Record]:
        """Return nothing: estimates have no records."""
        return ()

    def run(self, evaluator: Evaluator) -> None:
        """Estimate the times; after an exception there are none."""
        self.seconds = [None] * len(self.scripts)
        judge = Judge(evaluator, self.task)
        try:
            while not self._tried(evaluator, judge):
                pass
        except (UserError, EnvironmentStopError):
            raise
        except Exception as error:
            self.internal_errors = ("".join(traceback.format_exception(error)),)

    def _tried(self, evaluator: Evaluator, judge: Judge) -> bool:
        """Say whether there are estimates; False where the machine failed."""
        try:
            self.seconds = evaluator.estimates(self.task, self.scripts)
        except Exception as error:
            judge.raised(error)
            return False
        return True


@dataclass
class CandidateWork:
    """New candidates of a task.

    Attributes:
        candidates: The candidates, in the order in which they were suggested.
        known: Outcomes by binary hash; a candidate that compiles to one of these binaries is not run again.
        round: The round that the candidates belong to, from 0.
        lookahead: Says what follows the candidates.
        records: The records of candidates whose outcome is known by now.
        error: Why the others have none: the untuned code failed twice.
    """

    task: Task
    candidates: Sequence[Candidate]
    known: Mapping[str, Outcome]
    stored: TaskRecords
    round: int
    lookahead: Lookahead = field(default_factory=Lookahead)
    records: list[Record] = field(default_factory=list)
    error: UntunedError | None = None
    kind: ClassVar[WorkKind] = WorkKind.CANDIDATES

    @property
    def count(self) -> int:
        """How many candidates there are."""
        return len(self.candidates)

    def measured(self) -> Sequence[Record]:
        """Return the record of the untuned code and those of the candidates."""
        return self.stored.with_untuned(self.records)

    def run(self, evaluator: Evaluator) -> None:
        """Evaluate the candidates; a mistake of the evaluator is the failure of all that have no outcome yet.

        Candidates without an outcome because of the untuned code get no record: another run tries them.
        """
        for candidate in self.candidates:
            if candidate.problem:
                self._settle([candidate], Failure(FailureClass.ILLEGAL_TRACE, candidate.problem))
        missing = dict(enumerate(candidate for candidate in self.candidates if not candidate.problem))
        judge = Judge(evaluator, self.task)
        try:
            while missing:
                self._try(evaluator, judge, missing)
        except OF_UNTUNED as error:
            self.error = UntunedError(f"the untuned code of {self.task.name} failed: {reason(str(error))}")
        except (UserError, EnvironmentStopError):
            raise
        except Exception as error:
            text = "".join(traceback.format_exception(error))
            self._settle(missing.values(), Failure(FailureClass.INTERNAL_ERROR, text))
        self._settle_kept()

    def _try(self, evaluator: Evaluator, judge: Judge, missing: dict[int, Candidate]) -> None:
        """Evaluate candidates and remove those that have an outcome; the others are to be tried again."""
        evaluator.anticipate(self.lookahead)
        indices, failed = list(missing), dict[int, Outcome]()
        try:
            scripts = [candidate.script for candidate in missing.values()]
            for number, outcome in evaluator.evaluate(self.task, scripts, {**self.known, **self._found()}):
                if self._is_doubtful(outcome):
                    failed[indices[number]] = outcome
                else:
                    self._keep(missing.pop(indices[number]), outcome)
                    judge.succeeded()
        except Exception as error:
            judge.raised(error)
        if failed:
            for index in judge.of_candidates({i: o.failure for i, o in failed.items() if o.failure}):
                self._keep(missing.pop(index), failed[index])

    def _is_doubtful(self, outcome: Outcome) -> bool:
        """Say whether the machine may be to blame for an outcome that was not known before."""
        failure = outcome.failure
        return failure is not None and may_be_of_environment(failure) and outcome.binary_hash not in self.known

    def _settle_kept(self) -> None:
        """Store the records that the store did not take when they were known; a full disk is waited for, too."""
        outage = Outage()
        while True:
            try:
                self.records = self.stored.settled(self.records)
                return
            except StoreOutageError as error:
                if error.is_held:
                    raise
                outage.failed(str(error))

    def _found(self) -> dict[str, Outcome]:
        """Return the outcomes of this work by binary hash."""
        outcomes = (record.outcome for record in self.records)
        return {outcome.binary_hash: outcome for outcome in outcomes if outcome.binary_hash}

    def _keep(self, candidate: Candidate, outcome: Outcome) -> None:
        self.records.append(self.stored.settle(candidate, outcome, self.round))

    def _settle(self, candidates: Iterable[Candidate], failure: Failure) -> None:
        for candidate in candidates:
            self._keep(candidate, Outcome(None, failure))
