"""The records of one task: what a search knows from the store, and where its own outcomes go."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mlir_sched import __version__
from mlir_sched.database import RecordStore
from mlir_sched.database.record import Origin, Record, script_key
from mlir_sched.outcome import Outcome, Timing, as_untuned
from mlir_sched.trace import Trace

MOST_KNOWN = 3000
"""Records of earlier runs that a task's search learns from: they are read, and their features found, in two seconds."""
MOST_PRINTED = 300
"""The same where every script has to be printed anew, to see whether it is the one that was measured: 4 ms each."""
FASTEST = 100
"""Fastest records that a task's search learns from in any case: the parents of its first candidates are among them."""
UNTUNED_KEY = "untuned"
"""Candidate key of the untuned code in the record store."""


@dataclass(frozen=True)
class Candidate:
    """A trace with the script that it produces.

    Attributes:
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
        since: Number of the last record from before the run: candidates with failures up to this record that may not
            last are tried again.
        sources: Digest of what the run's scripts come from (``Space.sources``); empty where that is not known.
    """

    store: RecordStore
    task_key: str
    context: str
    seed: int
    since: int = 0
    sources: str = ""

    @property
    def tool(self) -> str:
        """What measures for this run: the version of mlir-sched, and what its scripts come from."""
        return f"{__version__}+{self.sources}" if self.sources else __version__

    def of_same_sources(self) -> tuple[Record, ...]:
        """Return records of scripts from before the run, which the same traces produce today.

        Failures that may not last are left out. Of many records these are :data:`MOST_KNOWN` and the fastest.
        """
        return self._sample(MOST_KNOWN, same_tool=True)

    def of_other_sources(self) -> tuple[Record, ...]:
        """Return records of scripts from before the run, whose traces may produce other scripts today.

        Of many records these are :data:`MOST_PRINTED` and the fastest.
        """
        return self._sample(MOST_PRINTED, same_tool=False)

    def known_traces(self) -> Iterable[str]:
        """Return the keys of the traces of all records with the sources of this run, however many they are."""
        return self.store.trace_keys(self.task_key, self.context, until=self.since, tool=self._trusted)

    @property
    def _trusted(self) -> str:
        """The tool whose records have the scripts that their traces produce today; none where sources are unknown."""
        return self.tool if self.sources else ""

    def _sample(self, most: int, *, same_tool: bool) -> tuple[Record, ...]:
        return self.store.sample(
            self.task_key,
            self.context,
            until=self.since,
            most=most,
            fastest=FASTEST,
            tool=self._trusted,
            same_tool=same_tool,
        )

    def find(self, candidate: Candidate) -> Record | None:
        """Return the record that makes measuring a candidate unnecessary, or None."""
        return self.store.find(self.task_key, self.context, candidate.key, since=self.since)

    def settle(self, candidate: Candidate, outcome: Outcome, round: int) -> Record:
        """Store the outcome of a candidate just measured and return its record, or that of a process that was faster.

        Where the store refuses at present, the record is kept until :meth:`settled`.

        Args:
            round: The round that it was measured in, from 0.
        """
        key = self.task_key, self.context, candidate.key
        made = candidate.trace, candidate.script
        record = Record(*key, Origin.SCRIPT, *made, outcome, round, self.seed, tool=self.tool)
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
        record = self._untuned_record()
        return None if record is None else record.outcome.timing

    def with_untuned(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return records behind that of the untuned code, where there is one."""
        untuned = self._untuned_record()
        return records if untuned is None else (untuned, *records)

    def _untuned_record(self) -> Record | None:
        return self.store.find(self.task_key, self.context, UNTUNED_KEY)

    def settle_untuned(self, outcome: Outcome) -> Timing:
        """Store the outcome of the untuned code and return its timing, or that of a process that was faster."""
        assert outcome.timing is not None
        outcome = replace(outcome, timing=as_untuned(outcome.timing))
        key = self.task_key, self.context, UNTUNED_KEY
        record = self.store.settle(Record(*key, Origin.UNTUNED, None, "", outcome, 0, self.seed))
        assert record.outcome.timing is not None
        return record.outcome.timing
