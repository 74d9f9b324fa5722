"""The records of one task: what a search knows from the store, and where its own outcomes go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlir_sched.database import RecordStore
from mlir_sched.database.record import Origin, Record, script_key
from mlir_sched.outcome import Outcome, Timing, as_untuned
from mlir_sched.trace import Trace

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


@dataclass(frozen=True)
class TaskRecords:
    """The records of a task that one run sees.

    Attributes:
        store: Where the records are.
        task_key: Key of the task.
        context: Context key.
        seed: Seed of the run.
        since: Number of the last record from before the run: candidates with failures up to this record that may not
            last are tried again.
    """

    store: RecordStore
    task_key: str
    context: str
    seed: int
    since: int = 0

    def earlier(self) -> list[Record]:
        """Return the records of scripts from before the run, without failures that may not last."""
        records = self.store.records(self.task_key, self.context, until=self.since)
        return [record for record in records if record.trace and record.outcome.is_lasting]

    def find(self, candidate: Candidate) -> Record | None:
        """Return the record that makes measuring a candidate unnecessary, or None."""
        return self.store.find(self.task_key, self.context, candidate.key, since=self.since)

    def settle(self, candidate: Candidate, outcome: Outcome, round: int) -> Record:
        """Store the outcome of a candidate just measured and return its record, or that of a process that was faster.

        Where the store refuses at present, the record is kept until :meth:`settled`.

        Args:
            candidate: The candidate that was measured.
            outcome: Its outcome.
            round: The round that it was measured in, from 0.
        """
        key = self.task_key, self.context, candidate.key
        record = Record(*key, Origin.SCRIPT, candidate.trace, candidate.script, outcome, round, self.seed)
        return self.store.keep(record, since=self.since)

    def settled(self, records: Sequence[Record]) -> list[Record]:
        """Store what is kept and return records as they are stored; a store that another process holds is waited for.

        Raises:
            StoreOutageError: The store still refuses.
        """
        stored = {record.key[:3]: record for record in self.store.settle_kept()}
        return [stored.get(record.key[:3], record) for record in records]

    def untuned(self) -> Timing | None:
        """Return the timing of the untuned code, which is measured once per context; None while it is not known."""
        record = self.store.find(self.task_key, self.context, UNTUNED_KEY)
        return None if record is None else record.outcome.timing

    def settle_untuned(self, outcome: Outcome) -> Timing:
        """Store the outcome of the untuned code and return its timing, or that of a process that was faster."""
        assert outcome.timing is not None
        outcome = replace(outcome, timing=as_untuned(outcome.timing))
        key = self.task_key, self.context, UNTUNED_KEY
        record = self.store.settle(Record(*key, Origin.UNTUNED, None, "", outcome, 0, self.seed))
        assert record.outcome.timing is not None
        return record.outcome.timing
