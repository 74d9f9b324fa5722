"""A replay's own time and its own store: what takes hours passes in a moment, and nothing is left behind."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from unittest import mock

from mlir_sched.database import RecordStore
from mlir_sched.database.record import Record, StoredProgram, StoredTask
from mlir_sched.database.work_cost import WorkCost

T = TypeVar("T")


@dataclass
class VirtualClock:
    """Seconds that pass only where somebody says so.

    Attributes:
        now_s: Seconds so far.
        speed: Seconds that pass for each second of work: 2.5 is a machine that takes 2.5 times as long.
    """

    speed: float = 1.0
    now_s: float = 0.0

    def works(self, seconds: float) -> None:
        """Let the seconds of recorded work pass."""
        self.now_s += self.speed * seconds

    @contextmanager
    def instead_of_the_machines(self) -> Iterator[None]:
        """Have ``time.monotonic`` return the virtual seconds."""

        def now_s() -> float:
            return self.now_s

        with mock.patch("time.monotonic", now_s):
            yield


@dataclass
class VirtualStore(RecordStore):
    """A record store of one run, in dictionaries."""

    decisions: dict[str, Any] = field(default_factory=dict)
    found: dict[tuple[str, str, str], Record] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """A name for messages."""
        return "memory"

    def add_task(self, task: StoredTask) -> None:
        """Forget the task."""

    def settle(self, record: Record, *, since: int = 0) -> Record:
        """Keep a record."""
        del since
        return self.found.setdefault(record.key[:3], record)

    def keep(self, record: Record, *, since: int = 0) -> Record:
        """Keep a record."""
        return self.settle(record, since=since)

    def settle_kept(self) -> tuple[Record, ...]:
        """Return nothing: all records are there."""
        return ()

    def sample(self, task_key: str, context_key: str, *, same_tool: bool, **_: object) -> tuple[Record, ...]:
        """Return the records of a task that another search of the run has made."""
        return self._scripts(task_key, context_key) if same_tool else ()

    def trace_keys(self, task_key: str, context_key: str, **_: object) -> frozenset[str]:
        """Return the keys of the traces of these records."""
        return frozenset(record.candidate_key for record in self._scripts(task_key, context_key))

    def find(self, task_key: str, context_key: str, candidate_key: str, *, since: int = 0) -> Record | None:
        """Return a record of this run."""
        del since
        return self.found.get((task_key, context_key, candidate_key))

    def programs(self, context_key: str | None = None) -> tuple[StoredProgram, ...]:
        """Return nothing: there was no earlier run."""
        del context_key
        return ()

    def begin_search(self, key: str) -> int:
        """Begin a search."""
        del key
        return 0

    def rounds(self, search_key: str) -> tuple[int, ...]:
        """Return nothing: no search is resumed."""
        del search_key
        return ()

    def save_round(self, search_key: str, round: int, trials: int) -> None:
        """Forget the round."""

    def save_cost_model(self, search_key: str, data: bytes) -> None:
        """Forget the model."""

    def decide(self, key: str, make: Callable[[], T]) -> T:
        """Return what was decided first."""
        if key not in self.decisions:
            self.decisions[key] = make()
        decided: T = self.decisions[key]
        return decided

    def decided(self, key: str) -> Any:
        """Return what was decided, or None."""
        return self.decisions.get(key)

    def seconds(self, key: str) -> float:
        """Return 0: the run has no earlier process."""
        del key
        return 0.0

    def save_seconds(self, key: str, seconds: float) -> None:
        """Forget the seconds."""

    def add_work_cost(self, run_key: str, cost: WorkCost) -> None:
        """Forget the cost."""

    def _scripts(self, task_key: str, context_key: str) -> tuple[Record, ...]:
        found = (record for key, record in self.found.items() if key[:2] == (task_key, context_key))
        return tuple(record for record in found if record.trace is not None)
