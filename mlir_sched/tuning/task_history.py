"""The history of a task's search: the records that the run sees, and the best time after every round."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from mlir_sched.database.record import Record
from mlir_sched.outcome import Timing
from mlir_sched.trace import Trace
from mlir_sched.tuning.evaluator import seconds_against


@dataclass
class TaskHistory:
    """What a run knows of the candidates of one task.

    Attributes:
        untuned: Timing of the untuned code.
        records: Every record seen by this run, by the key of its trace, in order.
        best_s: Best time after each round, on the scale of the untuned timing; None while no candidate was valid.
        trials: Candidates tried up to the end of each round.
    """

    untuned: Timing
    records: dict[str, Record] = field(default_factory=dict)
    best_s: list[float | None] = field(default_factory=list)
    trials: list[int] = field(default_factory=list)

    @property
    def tried(self) -> int:
        """Candidates tried so far."""
        return self.trials[-1] if self.trials else 0

    @property
    def rounds(self) -> int:
        """Rounds so far."""
        return len(self.trials)

    def end_round(self, tried: int) -> None:
        """End a round in which so many candidates were tried."""
        self.trials.append(self.tried + tried)
        self.best_s.append(self.best_seconds())

    def extend_round(self) -> None:
        """Count one further candidate as a part of the last round; there was one."""
        self.trials[-1] += 1
        self.best_s[-1] = self.best_seconds()

    def best_trace(self) -> Trace | None:
        """Return the trace of the fastest valid candidate; None when no candidate is faster than the untuned code."""
        best = next(iter(self.ranked()), None)
        if best is None or best.outcome.valid is None or best.outcome.valid.ratio <= 1.0:
            return None
        return best.trace

    def ranked(self) -> list[Record]:
        """Return the valid records, fastest first; of several that compile to the same program only the fastest."""
        valid = [r for r in self.records.values() if r.outcome.valid is not None]
        valid.sort(key=lambda r: (-r.outcome.valid.ratio if r.outcome.valid else 0.0, r.candidate_key))
        distinct = {r.outcome.binary_hash or r.candidate_key: r for r in reversed(valid)}
        return [r for r in valid if distinct[r.outcome.binary_hash or r.candidate_key] is r]

    def best_seconds(self) -> float | None:
        """Return the time of the best candidate so far, at most the untuned time; None while no candidate is valid.

        The time is on the scale of the untuned timing.
        """
        times = [seconds_against(r.outcome.valid, self.untuned) for r in self.records.values()]
        valid = [seconds for seconds in times if seconds is not None]
        return min(*valid, self.untuned.median_s) if valid else None

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
        failures = (r.outcome.failure for r in self.records.values())
        return Counter(failure.kind.value for failure in failures if failure is not None)
