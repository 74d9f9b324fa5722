"""The inner loop: rounds of one task, each of which asks the strategy for candidates and learns from their outcomes."""

from collections.abc import Collection, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest

from mlir_sched.database.record import Record
from mlir_sched.errors import FailureClass, IllegalTraceError
from mlir_sched.evaluation.evaluator import seconds_against
from mlir_sched.evaluation.lookahead import Lookahead
from mlir_sched.evaluation.task_records import Candidate, TaskRecords
from mlir_sched.evaluation.work import CandidateWork, EstimateWork, Work
from mlir_sched.outcome import Outcome, Timing
from mlir_sched.payload import family_of
from mlir_sched.search import Demand, Observation, Reach, SearchStrategy, Shown, TaskProgress
from mlir_sched.search.strategy import preselect
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.tuning.task_history import TaskHistory


@dataclass(frozen=True)
class Round:
    """The result of a round.

    Attributes:
        found: The task's new best trace; None when the best trace is the same as before the round.
        internal_errors: Tracebacks of the internal errors that candidates met, each once.
    """

    found: Trace | None = None
    internal_errors: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Elsewhere:
    """What a round may have that its strategy does not suggest.

    Attributes:
        given: By the user.
        hints: Found on other tasks of the run, or guessed.
        lent: By sources.
    """

    given: Sequence[Trace]
    hints: Sequence[Trace]
    lent: Sequence[Trace]

    @property
    def all(self) -> list[Trace]:
        """All of them."""
        return [*self.given, *self.hints, *self.lent]


@dataclass
class TaskSearch:
    """One task under search.

    Attributes:
        history: What this run knows of the task's candidates.
        starts: Traces that the user gave, not tried yet; they come before all others.
        chosen: Traces that the strategy suggested for the next round, ahead of that round.
        found: The best traces of other tasks of the run, repaired, the nearest task's first.
        guesses: Traces that the transform modules guess, the best guess first.
        lent: Traces of other dispatches, repaired, that share the first round with the strategy's own.
        drawn: Traces per candidate of the first round, which are the best of them by the estimates of a model.
        exhausted: Whether the strategy has nothing left, all candidates of the last round met internal errors, or the
            untuned code failed.
        stopped: How the untuned code failed; empty when it did not.
        foreseen: How well the cost model ranked the candidates of the first round, before it had learnt from any of the
            task (``pair_accuracy``); None where it could not, or records came before.
        believed: What others made believe that it reaches, before its first candidate; None where they were too few, or
            records came before.
        handed_out: The last work of this process, if there was any.
    """

    task: Task
    space: DesignSpace
    strategy: SearchStrategy
    stored: TaskRecords
    history: TaskHistory
    starts: Sequence[Trace] = ()
    found: Sequence[Trace] = ()
    guesses: Sequence[Trace] = ()
    chosen: Sequence[Trace] = ()
    lent: Sequence[Trace] = ()
    drawn: int = 1
    exhausted: bool = False
    stopped: str = ""
    foreseen: float | None = None
    believed: Reach | None = None
    handed_out: list[CandidateWork] = field(default_factory=list)
    _measured: int = 0

    def warm_start(self) -> None:
        """Learn from the records of earlier runs; the candidates of these records are not measured again.

        Records whose decisions no longer produce the same script (a transform module was changed) are left out. Where
        there are many records, a sample of them teaches as much in less time.
        """
        same, others = self.stored.of_same_sources(), self.stored.of_other_sources()
        self._learn([*filter(None, map(self._legal, same)), *filter(None, map(self._printed, others))])
        self.strategy.exclude_keys(self.stored.known_traces())

    def offer(self, traces: Iterable[Trace], most: int) -> None:
        """Have traces that won on other tasks tried next, in the place of those offered before.

        Args:
            most: Most traces that are taken, the first that fit and are not known.
        """
        before, self.found = self.found, ()
        self.found = self._taken(traces, most)
        kept = {trace.key for trace in (*self.found, *self.chosen)}
        self.strategy.release(trace for trace in before if trace.key not in kept)

    def guess(self, traces: Iterable[Trace], most: int) -> None:
        """Have traces tried that nothing was measured of.

        Args:
            most: Most traces that are taken, the first that fit and are not known.
        """
        self.guesses = [*self.guesses, *self._taken(traces, most)]

    def begin_with(self, traces: Iterable[Trace], most: int) -> None:
        """Have traces of other dispatches tried in the first round; a task with records of its own begins with these.

        They come after the traces that were given, and are at most half of what those and the hints leave.
        Those that do not fit in are dropped.

        Args:
            most: Most traces that are taken, the first that fit; no more are asked for.
        """
        if not self.history.records:
            self.lent = self._taken(traces, most)

    def prepare(self, size: int) -> list[str]:
        """Choose up to ``size`` candidates for the next round ahead of it, and return the scripts of all of them.

        None is chosen where a model has to estimate them first.
        """
        if self.estimates:
            return []
        elsewhere = self._from_elsewhere(size)
        self.strategy.exclude(elsewhere.all)
        wanted = max(0, size - len(elsewhere.all) - len(self.chosen))
        self.chosen = [*self.chosen, *self.strategy.suggest(wanted)]
        candidates = map(self._candidate, self._ordered(elsewhere, self.chosen))
        return [candidate.script for candidate in candidates if candidate.script]

    def round(self, size: int, limit: int, lookahead: Lookahead | None = None) -> Generator[Work, None, Round]:
        """Try the first ``limit`` of up to ``size`` new candidates; when none is left, the task is exhausted.

        The strategy is always asked for a whole round, so that a run with a larger budget gets the same candidates.

        Args:
            size: Candidates of a whole round.
            lookahead: Says what follows the round.
        """
        unknown = not self.history.records
        traces, errors = yield from self._suggest(size, limit)
        if not traces:
            self.exhausted = True
            return Round(None, errors)
        self._keep_waiting({trace.key for trace in traces[:limit]})
        waiting = {trace.key for trace in (*self.starts, *self.found, *self.guesses)}
        self.strategy.release(trace for trace in traces[limit:] if trace.key not in waiting)
        before = self.history.best_trace()
        records = yield from self._evaluated(traces[:limit], lookahead)
        if unknown:
            self.foreseen = next(iter(self.strategy.rank_accuracy), None)
        self.exhausted = bool(self.stopped) or all(_internal_error(record) for record in records)
        self.history.end_round(len(records))
        best = self.history.best_trace()
        return Round(None if best == before else best, (*errors, *_internal_errors(records)))

    def extend_round(self, trace: Trace) -> Generator[CandidateWork, None, Round]:
        """Try the trace of another task as a part of the last round, which must exist."""
        records = yield from self._evaluated([trace])
        self.exhausted = self.exhausted or bool(self.stopped)
        if records:
            self.history.extend_round()
        return Round(None, _internal_errors(records))

    def fitted(self, trace: Trace) -> Trace | None:
        """Return the trace of another task repaired for this one; None when it does not fit or is known here."""
        try:
            repaired = self.space.repaired(trace)
        except IllegalTraceError:
            return None
        given = (*self.starts, *self.found, *self.guesses, *self.lent)
        known = repaired.key in self.history.records or any(repaired.key == each.key for each in given)
        return None if known else repaired

    @property
    def tried(self) -> int:
        """Candidates tried so far."""
        return self.history.tried

    @property
    def measured(self) -> int:
        """Candidates evaluated by this process, not found in the store."""
        return self._measured + sum(len(work.records) for work in self.handed_out)

    def progress(self, unknown: int = 0) -> TaskProgress:
        """Return what a task scheduler needs to know.

        Args:
            unknown: Candidates of a round whose outcomes are not known yet; it counts as one that gained nothing.
        """
        best_s, trials = tuple(self.history.best_s), tuple(self.history.trials)
        if unknown:
            best_s, trials = (*best_s, self.history.seconds_per_call()), (*trials, self.tried + unknown)
        untuned_s = self.history.untuned.median_s
        return TaskProgress(float(self.task.weight), best_s, trials, self.exhausted, self.demand, untuned_s)

    @cached_property
    def demand(self) -> Demand | None:
        """What one call of the task computes and moves; None for a task that cannot be tuned."""
        return demand_of(self.task)

    @property
    def shown(self) -> Shown:
        """What the task has shown so far."""
        return Shown(self._dispatch_demand, self.history.untuned.median_s, self.history.seconds_per_call())

    def believe(self, others: Iterable[Shown]) -> None:
        """Note what other tasks of its family make believe that the task reaches, before its first candidate.

        Args:
            others: Tasks that have shown something, of any family.
        """
        demand, untuned_s = self._dispatch_demand, self.history.untuned.median_s
        alike = [each for each in others if each.demand.family == demand.family]
        self.believed = Reach.of(demand, untuned_s, alike)

    @cached_property
    def _dispatch_demand(self) -> Demand:
        return Demand.of(self.space.dispatch)

    def seconds_per_run(self) -> float:
        """Return the seconds that the task takes per run of the model with its best candidate so far."""
        return self.task.weight * self.history.seconds_per_call()

    @property
    def estimates(self) -> bool:
        """Whether a model chooses the next candidates: those of the first round."""
        return self.drawn > 1 and not self.history.records

    def _suggest(self, count: int, limit: int) -> Generator[Work, None, tuple[list[Trace], tuple[str, ...]]]:
        """Return up to ``count`` new traces, those that were given first, and internal errors.

        Of those from elsewhere, what is beyond ``limit`` is returned, too, and waits for a later round; what was lent
        is dropped.

        Yields:
            Estimates of the strategy's first traces, where there is a model: as many as ``limit`` candidates need.
        """
        elsewhere = self._from_elsewhere(count)
        self.strategy.exclude(elsewhere.all)
        given = {trace.key for trace in elsewhere.all}
        own = [t for t in self.chosen if t.key not in self.history.records and t.key not in given]
        kept = given | {trace.key for trace in own}
        self.strategy.release(trace for trace in self.lent if trace.key not in kept)
        self.chosen, self.lent = (), ()
        wanted = max(0, count - len(elsewhere.all) - len(own))
        if not self.estimates:
            return self._ordered(elsewhere, [*own, *self.strategy.suggest(wanted)]), ()
        drawn = [self._candidate(trace) for trace in self.strategy.suggest(wanted * self.drawn)[: limit * self.drawn]]
        work = EstimateWork(self.task, [candidate.script for candidate in drawn if not candidate.problem])
        yield work
        seconds = iter(work.seconds)
        estimated = [None if candidate.problem else next(seconds) for candidate in drawn]
        chosen = preselect([candidate.trace for candidate in drawn], estimated, wanted)
        return self._ordered(elsewhere, [*own, *chosen]), work.internal_errors

    def _taken(self, traces: Iterable[Trace], most: int) -> list[Trace]:
        """Return the first ``most`` of the traces that fit and are not known, each once and repaired."""
        taken = dict[str, Trace]()
        for trace in traces:
            if len(taken) == most:
                break
            if (fitted := self.fitted(trace)) is not None:
                taken[fitted.key] = fitted
        return [*taken.values()]

    def _from_elsewhere(self, count: int) -> _Elsewhere:
        """Return what a round of ``count`` candidates may have that its strategy does not suggest."""
        given = self.starts[:count]
        hints = _in_turns(self.found, self.guesses)[: count - len(given)]
        return _Elsewhere(given, hints, self.lent[: (count - len(given) - len(hints)) // 2])

    def _keep_waiting(self, tried: Collection[str]) -> None:
        """Keep what comes from elsewhere and is not tried in this round, for a later round."""
        self.starts, self.found, self.guesses = (
            [trace for trace in traces if trace.key not in tried] for traces in (self.starts, self.found, self.guesses)
        )

    def _ordered(self, elsewhere: _Elsewhere, own: Sequence[Trace]) -> list[Trace]:
        """Return the candidates of a round in their order, of which a small round takes the first.

        Hints come before what is suggested by a strategy that has seen nothing of the family, and in turns with what it
        suggests otherwise.
        """
        rest = _in_turns(own, elsewhere.lent)
        informed = elsewhere.lent or self.history.records
        return [*elsewhere.given, *(_in_turns(elsewhere.hints, rest) if informed else (*elsewhere.hints, *rest))]

    def _evaluated(
        self, traces: Sequence[Trace], lookahead: Lookahead | None = None
    ) -> Generator[CandidateWork, None, list[Record]]:
        """Learn from the records of candidates and return the records; hand out candidates that the store lacks.

        Candidates have no record where the untuned code failed, which they are compared with. The round that follows is
        decided before the outcomes are known, whether candidates are measured or in the store.
        """
        lookahead = lookahead or Lookahead()
        candidates = [self._candidate(trace) for trace in traces]
        found = {c.key: record for c in candidates if (record := self.stored.find(c)) is not None}
        new = [candidate for candidate in candidates if candidate.key not in found]
        if new:
            work = CandidateWork(self.task, new, self.history.binaries, self.stored, self.history.rounds, lookahead)
            self._measured, self.handed_out = self.measured, [work]
            yield work
            found |= {record.candidate_key: record for record in work.records}
            self.stopped = str(work.error or "")
        lookahead.decide()
        known = [candidate for candidate in candidates if candidate.key in found]
        records = [replace(found[c.key], trace=c.trace) for c in known]
        self._learn(records)
        return records

    def _candidate(self, trace: Trace) -> Candidate:
        try:
            return Candidate(trace, self.space.script(trace))
        except IllegalTraceError as error:
            return Candidate(trace, "", str(error))

    def _legal(self, record: Record) -> Record | None:
        """Return a record with its trace as the space makes it; None if the space does not."""
        assert record.trace is not None
        try:
            return replace(record, trace=self.space.legal(record.trace))
        except IllegalTraceError:
            return None

    def _printed(self, record: Record) -> Record | None:
        """Return a record as :meth:`_legal` if its script is the one that its trace produces, else None."""
        legal = self._legal(record)
        same = legal and legal.trace and self._candidate(legal.trace).key == record.candidate_key
        return legal if same else None

    def _learn(self, records: Sequence[Record]) -> None:
        learned = [(record.trace, record) for record in records if record.trace is not None]
        untuned = self.history.untuned
        self.history.learn(records)
        self.strategy.observe([_observation(trace, record.outcome, untuned) for trace, record in learned])


def _in_turns(first: Sequence[Trace], second: Sequence[Trace]) -> list[Trace]:
    """Return the traces of both in turns, so that the second are at most half of those at the front."""
    return [trace for pair in zip_longest(first, second) for trace in pair if trace is not None]


def demand_of(task: Task) -> Demand | None:
    """Return what one call of a task computes and moves; None for a task that cannot be tuned."""
    if task.dispatch is None:
        return None
    return Demand(family_of(task.dispatch), task.dispatch.scalar_ops, task.footprint_bytes)


def _observation(trace: Trace, outcome: Outcome, untuned: Timing) -> Observation:
    """Return what a strategy learns from an outcome, whether its numbers were checked or not."""
    return Observation(trace, seconds_against(outcome.timing, untuned), proven=outcome.valid is not None)


def _internal_error(record: Record) -> str:
    """Return the text of the internal error that a candidate met; empty when it met none."""
    failure = record.outcome.failure
    return failure.message if failure and failure.kind is FailureClass.INTERNAL_ERROR else ""


def _internal_errors(records: Sequence[Record]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(_internal_error, records))))
