"""The inner loop: rounds of one task, each of which asks the strategy for candidates, evaluates and records them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mlir_sched.database.record import Record
from mlir_sched.errors import Failure, FailureClass, IllegalTraceError
from mlir_sched.outcome import Outcome, Timing
from mlir_sched.search import Observation, SearchStrategy, TaskProgress
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.tuning.evaluator import Evaluator, script_outcomes, seconds_against
from mlir_sched.tuning.task_records import Candidate, TaskRecords


@dataclass(frozen=True)
class Round:
    """The result of a round.

    Attributes:
        tried: Candidates tried in it.
        found: The task's new best trace; None when the best trace is the same as before the round.
        internal_errors: Tracebacks of the internal errors that candidates met, each once.
    """

    tried: int = 0
    found: Trace | None = None
    internal_errors: tuple[str, ...] = ()


@dataclass
class TaskSearch:
    """One task under search.

    Attributes:
        task: The task.
        space: Its design space.
        strategy: Chooses candidates.
        stored: The task's records in the store.
        untuned: Timing of the untuned code.
        starts: Traces, not tried yet, that come before the strategy's own.
        records: Every record seen by this run, by the key of its trace, in order.
        best_s: Best time after each round, on the scale of the untuned timing.
        trials: Candidates tried up to the end of each round.
        exhausted: Whether the strategy has nothing left, or all candidates of the last round met internal errors.
        measured: Candidates evaluated by this process, not found in the store.
    """

    task: Task
    space: DesignSpace
    strategy: SearchStrategy
    stored: TaskRecords
    untuned: Timing
    starts: Sequence[Trace] = ()
    records: dict[str, Record] = field(default_factory=dict)
    best_s: list[float | None] = field(default_factory=list)
    trials: list[int] = field(default_factory=list)
    exhausted: bool = False
    measured: int = 0

    def warm_start(self) -> None:
        """Learn from the records of earlier runs; the candidates of these records are not measured again.

        Records whose decisions no longer produce the same script (a transform module was changed) are left out.
        """
        self._learn([r for r in self.stored.earlier() if r.trace and self._produces(r.trace, r.script)])

    def start_from(self, trace: Trace) -> None:
        """Have a trace tried before the strategy's own, after the traces that were given earlier."""
        self.starts = [*self.starts, trace]

    def run_round(self, round_size: int, limit: int, evaluator: Evaluator) -> Round:
        """Try the first ``limit`` of up to ``round_size`` new candidates; when none is left, the task is exhausted.

        The strategy is always asked for a whole round, so that a run with a larger budget gets the same candidates.
        """
        traces = self._suggest(round_size)[:limit]
        if not traces:
            self.exhausted = True
            return Round()
        before = self.best_trace()
        records = self._evaluate(traces, evaluator)
        self._learn(records)
        self.exhausted = all(_internal_error(record) for record in records)
        self.trials.append(self.tried + len(traces))
        self.best_s.append(self.best_seconds())
        best = self.best_trace()
        return Round(len(traces), None if best == before else best, _internal_errors(records))

    def try_further(self, trace: Trace, evaluator: Evaluator) -> Round:
        """Try a trace that was found for another task, as a part of the last round; the task has had a round."""
        records = self._evaluate([trace], evaluator)
        self._learn(records)
        self.trials[-1] += 1
        self.best_s[-1] = self.best_seconds()
        return Round(1, None, _internal_errors(records))

    def fitted(self, trace: Trace) -> Trace | None:
        """Return the trace of another task repaired for this one; None when it does not fit or is known here."""
        try:
            repaired = self.space.repaired(trace)
        except IllegalTraceError:
            return None
        known = repaired.key in self.records or any(repaired.key == start.key for start in self.starts)
        return None if known else repaired

    @property
    def tried(self) -> int:
        """Candidates tried so far."""
        return self.trials[-1] if self.trials else 0

    def best_trace(self) -> Trace | None:
        """Return the trace of the fastest valid candidate; None when no candidate is faster than the untuned code."""
        best = next(iter(self.ranked()), None)
        if best is None or best.outcome.timing is None or best.outcome.timing.ratio <= 1.0:
            return None
        return best.trace

    def progress(self) -> TaskProgress:
        """Return what a task scheduler needs to know."""
        return TaskProgress(float(self.task.weight), tuple(self.best_s), tuple(self.trials), self.exhausted)

    def ranked(self) -> list[Record]:
        """Return the valid records, fastest first; of several that compile to the same program only the fastest."""
        valid = [r for r in self.records.values() if r.outcome.timing is not None]
        valid.sort(key=lambda r: (-r.outcome.timing.ratio if r.outcome.timing else 0.0, r.candidate_key))
        distinct = {r.outcome.binary_hash or r.candidate_key: r for r in reversed(valid)}
        return [r for r in valid if distinct[r.outcome.binary_hash or r.candidate_key] is r]

    def best_seconds(self) -> float | None:
        """Return the time of the best candidate so far, at most the untuned time; None while no candidate is valid.

        The time is on the scale of the untuned timing.
        """
        times = [seconds_against(r.outcome, self.untuned) for r in self.records.values()]
        valid = [seconds for seconds in times if seconds is not None]
        return min(*valid, self.untuned.median_s) if valid else None

    def seconds_per_run(self) -> float:
        """Return the seconds that the task takes per run of the model with its best candidate so far."""
        return self.task.weight * (self.best_seconds() or self.untuned.median_s)

    def best_ratio(self) -> float:
        """Return the best speed-up so far, at least 1."""
        best = self.best_seconds()
        return 1.0 if best is None else max(1.0, self.untuned.median_s / best)

    def ratios(self) -> tuple[float | None, ...]:
        """Return the speed-up of every candidate in order, None for one that failed."""
        timings = (record.outcome.timing for record in self.records.values())
        return tuple(None if timing is None else timing.ratio for timing in timings)

    def failures(self) -> Counter[str]:
        """Return how many candidates failed, by class."""
        failures = (r.outcome.failure for r in self.records.values())
        return Counter(failure.kind.value for failure in failures if failure is not None)

    def _suggest(self, count: int) -> list[Trace]:
        """Return up to ``count`` new traces: those that were given, then the strategy's own."""
        first, self.starts = self.starts[:count], self.starts[count:]
        self.strategy.exclude(first)
        return [*first, *self.strategy.suggest(count - len(first))]

    def _evaluate(self, traces: Sequence[Trace], evaluator: Evaluator) -> list[Record]:
        """Return the records of candidates, after measuring those that are not in the store."""
        candidates = [self._candidate(trace) for trace in traces]
        known = {c.key: record for c in candidates if (record := self.stored.find(c)) is not None}
        new = [candidate for candidate in candidates if candidate.key not in known]
        known |= {record.candidate_key: record for record in self._measure(new, evaluator)}
        # A script that is compiled later has to be one that was made here, and not a text from the store.
        return [replace(known[c.key], trace=c.trace, script=c.script) for c in candidates]

    def _candidate(self, trace: Trace) -> Candidate:
        try:
            return Candidate(trace, self.space.script(trace))
        except IllegalTraceError as error:
            return Candidate(trace, "", str(error))

    def _produces(self, trace: Trace, script: str) -> bool:
        """Say whether a trace is legal and the script is the one it produces."""
        return bool(script) and self._candidate(trace).script == script

    def _measure(self, candidates: Sequence[Candidate], evaluator: Evaluator) -> list[Record]:
        """Measure candidates and store every outcome as soon as it is known."""
        illegal = [candidate for candidate in candidates if candidate.problem]
        legal = [candidate for candidate in candidates if not candidate.problem]
        records = [self._settle(c, Outcome(None, Failure(FailureClass.ILLEGAL_TRACE, c.problem))) for c in illegal]
        binaries = {r.outcome.binary_hash: r.outcome for r in self.records.values() if r.outcome.binary_hash}
        scripts = [candidate.script for candidate in legal]
        for index, outcome in script_outcomes(evaluator, self.task, scripts, binaries):
            records.append(self._settle(legal[index], outcome))
        return records

    def _settle(self, candidate: Candidate, outcome: Outcome) -> Record:
        self.measured += 1
        return self.stored.settle(candidate, outcome, len(self.best_s))

    def _learn(self, records: Sequence[Record]) -> None:
        learned = [(record.trace, record) for record in records if record.trace is not None]
        self.records |= {trace.key: record for trace, record in learned}
        self.strategy.observe([Observation(trace, seconds_against(r.outcome, self.untuned)) for trace, r in learned])


def _internal_error(record: Record) -> str:
    """Return the text of the internal error that a candidate met; empty when it met none."""
    failure = record.outcome.failure
    return failure.message if failure and failure.kind is FailureClass.INTERNAL_ERROR else ""


def _internal_errors(records: Sequence[Record]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(_internal_error, records))))
