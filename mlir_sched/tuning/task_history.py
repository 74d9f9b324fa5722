"""The history of a task's search: the records that the run sees, and the best time after every round."""

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from mlir_sched.database.record import Record
from mlir_sched.outcome import Outcome, Timing
from mlir_sched.trace import Trace


@dataclass
class TaskHistory:
    """What a run knows of the candidates of one task, in an order that makes questions cheap.

    Attributes:
        untuned: Timing of the untuned code.
        records: Every record seen by this run, by the key of its trace, in order; without the text of its script,
            which its trace produces.
        best_s: Best time after each round, on the scale of the untuned timing; None while no candidate was valid.
        trials: Candidates tried up to the end of each round.
        binaries: Outcomes by the hash of the compiled code.
    """

    untuned: Timing
    records: dict[str, Record] = field(default_factory=dict)
    best_s: list[float | None] = field(default_factory=list)
    trials: list[int] = field(default_factory=list)
    binaries: dict[str, Outcome] = field(default_factory=dict)
    _valid: list[Record] = field(default_factory=list)  # fastest first
    _failed: Counter[str] = field(default_factory=Counter)

    def learn(self, records: Iterable[Record]) -> None:
        """Add records that have a trace; a later record of a trace takes the place of an earlier one."""
        for record in records:
            if record.trace is not None:
                self._learn(record.trace.key, replace(record, script=""))

    def _learn(self, key: str, record: Record) -> None:
        if key in self.records:
            self._forget(self.records[key])
        self.records[key] = record
        outcome = record.outcome
        if outcome.binary_hash:
            self.binaries[outcome.binary_hash] = outcome
        if outcome.valid is not None:
            insort(self._valid, record, key=_rank)
        if outcome.failure is not None:
            self._failed[outcome.failure.kind.value] += 1

    def _forget(self, record: Record) -> None:
        if record.outcome.valid is not None:
            self._valid.remove(record)
        if record.outcome.failure is not None:
            self._failed[record.outcome.failure.kind.value] -= 1

    @property
    def tried(self) -> int:
        """Candidates tried so far."""
        return self.trials[-1] if self.trials else 0

    @property
    def rounds(self) -> int:
        """Rounds so far."""
        return len(self.trials)

    def end_round(self, tried: int) -> None:
        """End a round in which ``tried`` candidates were tried."""
        self.trials.append(self.tried + tried)
        self.best_s.append(self.best_seconds())

    def extend_round(self) -> None:
        """Count one further candidate as a part of the last round, which must exist."""
        self.trials[-1] += 1
        self.best_s[-1] = self.best_seconds()

    def best_trace(self) -> Trace | None:
        """Return the trace of the fastest valid candidate; None when no candidate is faster than the untuned code."""
        return self._valid[0].trace if self._valid and _ratio(self._valid[0]) > 1.0 else None

    def ranked(self) -> Iterator[Record]:
        """Yield the valid records, fastest first; of several that compile to the same program only the fastest."""
        seen = set[str]()
        for record in self._valid:
            program = record.outcome.binary_hash or record.candidate_key
            if program not in seen:
                seen.add(program)
                yield record

    def unchecked(self) -> list[Record]:
        """Return the records that were timed but not checked in full, fastest first.

        They lost to others, which may be there no longer: a transform module was changed since.
        """
        timed = (each for each in self.records.values() if each.outcome.timing is not None)
        return sorted((each for each in timed if each.outcome.valid is None), key=_rank)

    def best_seconds(self) -> float | None:
        """Return the time of the best candidate so far, at most the untuned time; None while no candidate is valid.

        The time is on the scale of the untuned timing.
        """
        return self.untuned.median_s / max(1.0, _ratio(self._valid[0])) if self._valid else None

    def seconds_per_call(self) -> float:
        """Return the seconds that a call takes with the best candidate so far, or else without any."""
        return self.best_seconds() or self.untuned.median_s

    def best_ratio(self) -> float:
        """Return the best speed-up so far, at least 1."""
        return max(1.0, self.untuned.median_s / self.seconds_per_call())

    def ratios(self) -> tuple[float | None, ...]:
        """Return the speed-up of every candidate in order, None for one that is not valid."""
        timings = (record.outcome.valid for record in self.records.values())
        return tuple(None if timing is None else timing.ratio for timing in timings)

    def failures(self) -> Counter[str]:
        """Return how many candidates failed, by class."""
        return +self._failed


def _ratio(record: Record) -> float:
    assert record.outcome.timing is not None
    return record.outcome.timing.ratio


def _rank(record: Record) -> tuple[float, str]:
    return -_ratio(record), record.candidate_key
