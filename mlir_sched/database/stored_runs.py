"""What a record store keeps of runs beside what they measure: searches, decisions, clocks, and what work cost."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from sqlalchemy import func, select

from mlir_sched.database.engine import store_name
from mlir_sched.database.record import utc_now
from mlir_sched.database.schema import (
    CLOCKS,
    COST_MODELS,
    RECORDS,
    ROUNDS,
    RUN_DECISIONS,
    SEARCHES,
    WORK_COSTS,
    dump_json,
    read_decision,
    read_work_cost,
)
from mlir_sched.database.statements import Statements
from mlir_sched.database.work_cost import WorkCost

T = TypeVar("T")


class StoredRuns:
    """The part of a record store that runs keep about themselves."""

    def __init__(self, database: Statements) -> None:
        self._database = database

    @property
    def name(self) -> str:
        """The file, or the URL without its password."""
        return store_name(self._database.engine.url)

    def last_record(self) -> int:
        """Return the number of the last record of the store, 0 when there is none; later records get larger numbers."""
        return int(self._database.value(select(func.max(RECORDS.c.id))) or 0)

    # Searches

    def begin_search(self, key: str) -> int:
        """Return the number of the last record from before a search began, which is now unless its key is known.

        When several processes begin a search with one key, all of them get the same number.
        """
        row = {"key": key, "last_record": self.last_record(), "created": utc_now()}
        self._database.insert_missing(SEARCHES, ("key",), [row])
        return int(self._database.value(select(SEARCHES.c.last_record).where(SEARCHES.c.key == key)))

    def searches(self) -> tuple[str, ...]:
        """Return the keys of all searches in insertion order."""
        return self._database.values(select(SEARCHES.c.key).order_by(SEARCHES.c.id))

    def save_round(self, search_key: str, round: int, trials: int) -> None:
        """Store a round of a search, replacing what was stored of the same round.

        Raises:
            ValueError: There is no such search.
        """
        self._check_search(search_key)
        row = {"search_key": search_key, "round": int(round), "trials": int(trials)}
        self._database.replace(ROUNDS, ("search_key", "round"), row)

    def rounds(self, search_key: str) -> tuple[int, ...]:
        """Return, in the order of a search's rounds, the candidates that it had tried when the round was saved last."""
        query = select(ROUNDS.c.trials).where(ROUNDS.c.search_key == search_key).order_by(ROUNDS.c.round)
        return self._database.values(query)

    def save_cost_model(self, search_key: str, data: bytes) -> None:
        """Store the cost model of a search, replacing an earlier one.

        Raises:
            ValueError: There is no such search.
        """
        self._check_search(search_key)
        row = {"search_key": search_key, "data": data, "created": utc_now()}
        self._database.replace(COST_MODELS, ("search_key",), row)

    def load_cost_model(self, search_key: str) -> bytes | None:
        """Return the stored cost model of a search, or None."""
        data = self._database.value(select(COST_MODELS.c.data).where(COST_MODELS.c.search_key == search_key))
        return None if data is None else bytes(data)

    # What runs decided once, and their clocks

    def decide(self, key: str, make: Callable[[], T]) -> T:
        """Return the decision under a key: the one that any process made first, else what ``make`` returns now.

        When several processes decide at the same time, all of them get the decision of the first.

        Args:
            make: Called when nothing is decided yet; returns JSON data that reads back as it is, so no tuples.
        """
        if self.decided(key) is None:
            row = {"key": key, "value": dump_json(make()), "created": utc_now()}
            self._database.insert_missing(RUN_DECISIONS, ("key",), [row])
        return cast("T", self.decided(key))

    def decided(self, key: str) -> Any:
        """Return the JSON data that is decided under a key, or None when nothing is."""
        query = select(RUN_DECISIONS.c.id, RUN_DECISIONS.c.value).where(RUN_DECISIONS.c.key == key)
        found = self._database.rows(query)
        return read_decision(found[0], self.name) if found else None

    def save_seconds(self, key: str, seconds: float) -> None:
        """Store the seconds that a clock shows, replacing what it showed before."""
        self._database.replace(CLOCKS, ("key",), {"key": key, "spent_s": float(seconds)})

    def seconds(self, key: str) -> float:
        """Return the seconds that a clock showed when it was saved last, 0 when it never was."""
        return float(self._database.value(select(CLOCKS.c.spent_s).where(CLOCKS.c.key == key)) or 0.0)

    # What work cost

    def add_work_cost(self, run_key: str, cost: WorkCost) -> None:
        """Store what a piece of a run's work cost."""
        row = vars(cost) | {"run_key": run_key, "kind": str(cost.kind), "created": utc_now()}
        self._database.insert(WORK_COSTS, row)

    def work_costs(self, run_key: str | None = None) -> tuple[WorkCost, ...]:
        """Return what the work of a run cost, by default of all runs, in the order in which the work ended."""
        query = select(WORK_COSTS).order_by(WORK_COSTS.c.id)
        if run_key is not None:
            query = query.where(WORK_COSTS.c.run_key == run_key)
        return tuple(read_work_cost(row, self.name) for row in self._database.rows(query))

    def _check_search(self, key: str) -> None:
        if self._database.value(select(SEARCHES.c.id).where(SEARCHES.c.key == key)) is None:
            raise ValueError(f"{self.name} has no search {key!r}: call begin_search first")
