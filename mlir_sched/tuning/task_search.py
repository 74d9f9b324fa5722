"""The search of one task: asks the strategy, answers from the store what is known, has the rest evaluated, records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mlir_sched.database import RecordStore
from mlir_sched.database.record import Origin, Record, script_key
from mlir_sched.errors import Failure, FailureClass, IllegalTraceError
from mlir_sched.outcome import Outcome, Timing
from mlir_sched.search import Observation, Strategy, TaskProgress
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.tuning.evaluator import Evaluator, as_untuned, script_outcomes, seconds_against, untuned_outcome

UNTUNED_KEY = "untuned"
"""Candidate key of the untuned code in the record store."""


@dataclass(frozen=True)
class Candidate:
    """A trace with the script that it produces.

    Attributes:
        trace: The decisions.
        script: The script's text; empty when the trace is not legal.
        problem: The rule that the trace breaks; empty when it is legal.
    """

    trace: Trace
    script: str
    problem: str = ""

    @property
    def key(self) -> str:
        """Its key in the record store."""
        return script_key(self.script) if self.script else self.trace.key


@dataclass
class TaskSearch:
    """One task under search.

    Attributes:
        task: The task.
        space: Its design space.
        strategy: Chooses candidates.
        store: Where outcomes are kept.
        context: Context key of its records.
        seed: Seed of the run.
        untuned: Timing of the untuned code.
        records: Every record seen by this run, by the key of its trace, in order.
        best_s: Best time after each round, on the scale of the untuned timing.
        trials: Candidates tried up to the end of each round.
        exhausted: Whether the strategy has nothing left, or a whole round met internal errors.
        measured: Candidates evaluated now, not found in the store.
        tried: Candidates tried so far.
        start_from: Traces that are tried before the strategy's own.
        since: Number of the last record from before the run: failures up to it that may not last are tried again.
    """

    task: Task
    space: DesignSpace
    strategy: Strategy
    store: RecordStore
    context: str
    seed: int
    untuned: Timing
    records: dict[str, Record] = field(default_factory=dict)
    best_s: list[float | None] = field(default_factory=list)
    trials: list[int] = field(default_factory=list)
    exhausted: bool = False
    measured: int = 0
    tried: int = 0
    start_from: list[Trace] = field(default_factory=list)
    since: int = 0

    def warm_start(self, last_record: int) -> None:
        """Learn from the records of earlier runs; what they know of a candidate is not measured again.

        Records of scripts that their decisions do not produce any more (a transform module was changed) are left out,
        and failures that may not last.

        Args:
            last_record: Number of the last record from before this run.
        """
        self.since = last_record
        records = self.store.records(self.task.key, self.context, until=last_record)
        self._learn([r for r in records if r.trace and r.outcome.is_lasting and self._produces(r.trace, r.script)])

    def run_round(self, batch_size: int, limit: int, evaluator: Evaluator) -> int:
        """Try the first ``limit`` of up to ``batch_size`` new candidates and return how many were tried.

        A round always suggests whole batches: a run that goes on with a larger budget then suggests the same ones.
        """
        traces = self._next_traces(batch_size)[:limit]
        if not traces:
            self.exhausted = True
            return 0
        records = self._try(traces, evaluator)
        self.exhausted = all(_internal_error(record) for record in records)
        self.best_s.append(self.best_seconds())
        self.trials.append(self.tried)
        return len(traces)

    def try_traces(self, traces: Sequence[Trace], evaluator: Evaluator) -> None:
        """Try traces as a part of the last round."""
        self._try(traces, evaluator)
        if self.best_s:
            self.best_s[-1], self.trials[-1] = self.best_seconds(), self.tried

    def fitted(self, trace: Trace) -> Trace | None:
        """Return the trace of another task repaired for this one; None when it does not fit or was tried here."""
        try:
            repaired = self.space.replay(trace)
        except IllegalTraceError:
            return None
        known = repaired.key in self.records or any(repaired.key == start.key for start in self.start_from)
        return None if known else repaired

    def best_trace(self) -> Trace | None:
        """Return the trace of the fastest valid candidate that is faster than the untuned code."""
        best = next(iter(self.ranked()), None)
        if best is None or best.outcome.timing is None or best.outcome.timing.ratio <= 1.0:
            return None
        return best.trace

    def progress(self) -> TaskProgress:
        """Return what a task scheduler needs to know."""
        return TaskProgress(float(self.task.weight), tuple(self.best_s), tuple(self.trials), self.exhausted)

    def ranked(self) -> list[Record]:
        """Return the valid records, fastest first; of several that are one program the first."""
        valid = [r for r in self.records.values() if r.outcome.timing is not None]
        valid.sort(key=lambda r: (-r.outcome.timing.ratio if r.outcome.timing else 0.0, r.candidate_key))
        distinct = {r.outcome.binary_hash or r.candidate_key: r for r in reversed(valid)}
        return [r for r in valid if distinct[r.outcome.binary_hash or r.candidate_key] is r]

    def best_seconds(self) -> float | None:
        """Return the best time so far on the scale of the untuned timing, untuned included."""
        times = [seconds_against(r.outcome, self.untuned) for r in self.records.values()]
        return min((t for t in times if t is not None), default=None)

    def seconds_per_run(self) -> float:
        """Return what the task takes per run of the model with its best candidate so far."""
        return self.task.weight * (self.best_seconds() or self.untuned.median_s)

    def best_ratio(self) -> float:
        """Return the best speed-up so far, at least 1."""
        best = self.best_seconds()
        return 1.0 if best is None else max(1.0, self.untuned.median_s / best)

    def ratios(self) -> tuple[float | None, ...]:
        """Return the speed-up of every candidate in order, None for one that failed."""
        timings = (record.outcome.timing for record in self.records.values())
        return tuple(None if timing is None else timing.ratio for timing in timings)

    def internal_errors(self) -> list[str]:
        """Return the texts of the internal errors that candidates met, each once."""
        return list(dict.fromkeys(filter(None, map(_internal_error, self.records.values()))))

    def failures(self) -> Counter[str]:
        """Return how many candidates failed, by class."""
        failures = (r.outcome.failure for r in self.records.values())
        return Counter(failure.kind.value for failure in failures if failure is not None)

    def _try(self, traces: Sequence[Trace], evaluator: Evaluator) -> list[Record]:
        """Have candidates evaluated that are not in the store, learn from all, and return their records."""
        self.strategy.exclude(traces)
        candidates = [self._candidate(trace) for trace in traces]
        found = {candidate.key: self._find(candidate) for candidate in candidates}
        known = {key: record for key, record in found.items() if record is not None}
        new = [candidate for candidate in candidates if candidate.key not in known]
        known |= {record.candidate_key: record for record in self._evaluate(new, evaluator)}
        # Whoever wrote the store, the script that may be compiled later is the one made here.
        records = [replace(known[c.key], trace=c.trace, script=c.script) for c in candidates]
        self._learn(records)
        self.tried += len(traces)
        return records

    def _next_traces(self, count: int) -> list[Trace]:
        first, self.start_from = self.start_from[:count], self.start_from[count:]
        self.strategy.exclude(first)
        return [*first, *self.strategy.suggest(count - len(first))]

    def _candidate(self, trace: Trace) -> Candidate:
        try:
            return Candidate(trace, self.space.script(trace))
        except IllegalTraceError as error:
            return Candidate(trace, "", str(error))

    def _produces(self, trace: Trace, script: str) -> bool:
        """Say whether a trace is legal and the script is the one it produces."""
        return bool(script) and self._candidate(trace).script == script

    def _find(self, candidate: Candidate) -> Record | None:
        return self.store.find(self.task.key, self.context, candidate.key, since=self.since)

    def _evaluate(self, candidates: Sequence[Candidate], evaluator: Evaluator) -> list[Record]:
        """Evaluate candidates and store every outcome as soon as it is known."""
        illegal = [candidate for candidate in candidates if candidate.problem]
        legal = [candidate for candidate in candidates if not candidate.problem]
        records = [self._settle(c, Outcome(None, Failure(FailureClass.ILLEGAL_TRACE, c.problem))) for c in illegal]
        binaries = {r.outcome.binary_hash: r.outcome for r in self.records.values() if r.outcome.binary_hash}
        scripts = [candidate.script for candidate in legal]
        for index, outcome in script_outcomes(evaluator, self.task, scripts, binaries):
            records.append(self._settle(legal[index], outcome))
        return records

    def _settle(self, candidate: Candidate, outcome: Outcome) -> Record:
        """Return what is stored of a candidate that was measured now: this outcome, or that of a faster process."""
        self.measured += 1
        trace, script, batch = candidate.trace, candidate.script, len(self.best_s)
        key = self.task.key, self.context, candidate.key
        record = Record(*key, Origin.SCRIPT, trace, script, outcome, batch, self.seed)
        return self.store.settle(record, since=self.since)

    def _learn(self, records: Sequence[Record]) -> None:
        self.records |= {record.trace.key: record for record in records if record.trace is not None}
        self.strategy.observe(
            [
                Observation(record.trace, seconds_against(record.outcome, self.untuned))
                for record in records
                if record.trace is not None
            ]
        )


def _internal_error(record: Record) -> str:
    """Return the text of the internal error that a candidate met; empty when it met none."""
    failure = record.outcome.failure
    return failure.message if failure and failure.kind is FailureClass.INTERNAL_ERROR else ""


def is_measured(task: Task, store: RecordStore, context: str) -> bool:
    """Say whether the timing of a task's untuned code is known."""
    return store.find(task.key, context, UNTUNED_KEY) is not None


def untuned_timing(task: Task, store: RecordStore, context: str, seed: int, evaluator: Evaluator) -> Timing:
    """Return the timing of a task's untuned code, measured once per context.

    Raises:
        UntunedError: It cannot be compiled or run.
    """
    record = store.find(task.key, context, UNTUNED_KEY)
    if record is None:
        outcome = untuned_outcome(evaluator, task)
        assert outcome.timing is not None
        outcome = Outcome(as_untuned(outcome.timing), None, outcome.binary_hash)
        record = store.settle(Record(task.key, context, UNTUNED_KEY, Origin.UNTUNED, None, "", outcome, 0, seed))
    assert record.outcome.timing is not None
    return record.outcome.timing
