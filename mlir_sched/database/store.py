"""The record store: every measured candidate, kept in a database that survives kill -9 and can be read during a run.

When ``add`` or ``settle`` returns, its records are on the disk. A record is never changed; a second record of the same
task, context and candidate is stored only where the first is a failure that may not last, so that a candidate has one
measurement.
"""

import contextlib
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from sqlalchemy import ColumnElement, Connection, Engine, Select, func, insert, literal, or_, select

from mlir_sched.database.bounded import drop_longest_unused, drop_oldest_programs, note_use
from mlir_sched.database.engine import (
    Patience,
    StoreOutageError,
    check_integrity,
    enable_wal,
    is_file,
    make_engine,
    parse_url,
    silent,
    store_name,
    transaction,
)
from mlir_sched.database.record import Origin, Record, StoredProgram, StoredTask, utc_now
from mlir_sched.database.schema import (
    CLOCKS,
    COST_MODELS,
    PROGRAMS,
    RECORDS,
    ROUNDS,
    RUN_DECISIONS,
    SEARCHES,
    TASKS,
    WORK_COSTS,
    dump_json,
    program_row,
    read_decision,
    read_program,
    read_record,
    read_task,
    read_timing,
    read_trace_key,
    read_work_cost,
    record_row,
    task_row,
)
from mlir_sched.database.schema_version import has_tables, make_tables
from mlir_sched.database.statements import Statements, insert_missing_rows, replace_row
from mlir_sched.database.work_cost import WorkCost
from mlir_sched.errors import LASTING, UserError
from mlir_sched.outcome import Verdict

T = TypeVar("T")
_WITHOUT_SCRIPTS = (*(column for column in RECORDS.c if column is not RECORDS.c.script), literal("").label("script"))


class RecordStore:
    """An open record store; made by :meth:`open`, closed by :meth:`close` or at the end of a ``with`` block.

    Every method may raise a UserError when the database refuses: locked for too long or disk full (StoreOutageError),
    damaged. A store must not be used in a forked child; open another one there.
    """

    def __init__(self, database: Statements) -> None:
        self._database = database
        self._kept: list[tuple[Record, int]] = []
        self._settled: list[Record] = []

    @classmethod
    def open(
        cls,
        url_or_path: str | Path,
        *,
        read_only: bool = False,
        timeout_s: float = 30.0,
        note: Callable[[str], None] = silent,
    ) -> Self:
        """Open a store and return it; a missing store is made.

        Args:
            url_or_path: Path of an SQLite file, or an SQLAlchemy URL.
            read_only: Change nothing; the store must exist.
            timeout_s: Seconds to wait for another process's lock, now and later; see :meth:`wait_for_locks`.
            note: Is told, once per wait, that the store is waited for.

        Raises:
            UserError: The store cannot be opened, is no record store, is damaged or has another schema than this
                mlir-sched's; the file stays as it was.
        """
        url, patience = parse_url(url_or_path), Patience(timeout_s, note)
        engine = make_engine(url, read_only=read_only, timeout_s=timeout_s)
        try:
            _prepare(engine, patience, read_only=read_only)
        except BaseException:
            engine.dispose()
            raise
        return cls(Statements(engine, patience))

    @property
    def name(self) -> str:
        """The file, or the URL without its password."""
        return store_name(self._database.engine.url)

    @property
    def file(self) -> Path | None:
        """The file; None for a store in memory or on a server."""
        url = self._database.engine.url
        return Path(str(url.database)) if is_file(url) else None

    def require_writable(self) -> None:
        """Check that records can be added; the store stays as it is.

        Raises:
            UserError: The database cannot be written.
        """
        with transaction(self._database.engine, write=True) as connection:
            connection.exec_driver_sql("CREATE TABLE mlir_sched_tried (tried INTEGER)")
            connection.rollback()

    def wait_for_locks(self, seconds: float, note: Callable[[str], None] = silent) -> None:
        """Wait so many seconds for another process's lock from now on."""
        self._database.patience = Patience(seconds, note)

    def close(self) -> None:
        """Close the connections; everything that was added is stored, and what is kept, unless the store is held."""
        self.wait_for_locks(0.0)
        with contextlib.suppress(UserError):
            self.settle_kept()
        self._database.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Tasks

    def add_task(self, task: StoredTask) -> None:
        """Store a task unless its key is known; a known task keeps its description."""
        self._database.insert_missing(TASKS, ("key",), [task_row(task)])

    def tasks(self) -> tuple[StoredTask, ...]:
        """Return every task in insertion order."""
        rows = self._database.rows(select(TASKS).order_by(TASKS.c.id))
        return tuple(read_task(row, self.name) for row in rows)

    # Records

    def add(self, records: Iterable[Record]) -> tuple[Record, ...]:
        """Store records, all or none, and return those that were new, in order; they are on the disk by then.

        A record whose key (:attr:`Record.key`) is stored already, or comes earlier in the same call, is left out. This
        is for records that are complete, as those of another store, of a benchmark or of a test; a search stores what
        it measures by :meth:`settle`.

        Raises:
            ValueError: A task is not in the store.
        """
        records = tuple(records)
        self._check_tasks(records)
        keys = ("task_key", "context_key", "candidate_key", "attempt")
        new = self._database.insert_missing(RECORDS, keys, [record_row(record) for record in records])
        return tuple(records[index] for index in new)

    def settle(self, record: Record, *, since: int = 0) -> Record:
        """Return the stored record of a candidate (:meth:`find`); without one, store ``record`` and return it.

        All processes that measure one candidate at the same time get the record of the first of them. The new record
        is stored as a further attempt where failures that may not last came before.

        Args:
            since: Number of a record, as in :meth:`find`.

        Raises:
            ValueError: The record's task is not in the store.
        """
        self._check_tasks([record])
        return self._database.in_turn(lambda connection: _settled(connection, record, since))

    def keep(self, record: Record, *, since: int = 0) -> Record:
        """Settle a record; where the store refuses at present, keep the record in memory and return it as it is."""
        self._kept.append((record, since))
        patience, self._database.patience = self._database.patience, Patience(0.0)
        try:
            self._settle_kept()
        except StoreOutageError:
            return record
        finally:
            self._database.patience = patience
        return self._settled[-1]

    def settle_kept(self) -> tuple[Record, ...]:
        """Settle the records that are kept in memory, in their order; a store that another process holds is waited for.

        Returns:
            What is stored of all records that were given to :meth:`keep` since the last call.

        Raises:
            StoreOutageError: The store still refuses; what could not be settled stays kept.
        """
        self._settle_kept()
        settled, self._settled = self._settled, []
        return tuple(settled)

    def settle_bounded(
        self,
        measured: Iterable[tuple[StoredTask, Sequence[Record]]],
        most_bytes: int,
        programs: Sequence[StoredProgram] = (),
    ) -> None:
        """Settle the records of tasks, which are added, too, and programs, in one call: all or none.

        What lasts is stored beside failures that may not. Tasks that were used longest ago are dropped with their
        records where the store takes more than ``most_bytes`` then, and old programs (:func:`drop_oldest_programs`);
        it has to be an SQLite file.

        Raises:
            UserError: Runs go on with the store, so that nothing may be dropped from it.
        """
        measured = tuple(measured)

        def write(connection: Connection) -> None:
            if connection.scalar(select(SEARCHES.c.id).limit(1)) is not None:
                raise UserError(f"{self.name} is the store of runs, which go on with it: give another file, or off")
            for task, records in measured:
                insert_missing_rows(connection, TASKS, ("key",), [task_row(task)])
                note_use(connection, task.key)
                for record in records:
                    _settled(connection, record, since=sys.maxsize if record.outcome.is_lasting else 0)
            for program in programs:
                self._keep_program(connection, program)
            drop_oldest_programs(connection)
            drop_longest_unused(connection, most_bytes)

        self._database.in_turn(write)

    def last_record(self) -> int:
        """Return the number of the last record of the store, 0 when there is none; later records get larger numbers."""
        return int(self._database.value(select(func.max(RECORDS.c.id))) or 0)

    def records(
        self, task_key: str, context_key: str, *, until: int | None = None, scripts: bool = True
    ) -> tuple[Record, ...]:
        """Return the records of a task in a context, in insertion order.

        Args:
            until: Number of the last record to return; by default all records are returned.
            scripts: Whether they have the texts of their scripts, which are most of what is read.
        """
        columns = RECORDS.c if scripts else _WITHOUT_SCRIPTS
        query = select(*columns).where(*_in_context(task_key, context_key)).order_by(RECORDS.c.id)
        if until is not None:
            query = query.where(RECORDS.c.id <= until)
        return tuple(read_record(row, self.name) for row in self._database.rows(query))

    def sample(
        self, task_key: str, context_key: str, *, until: int, most: int, fastest: int, tool: str, same_tool: bool
    ) -> tuple[Record, ...]:
        """Return lasting records without the texts of their scripts, in insertion order: a sample where there are many.

        The sample is that with the smallest candidate keys, which are digests, so that it has nothing to do with times.

        Args:
            until: Number of the last record that counts.
            most: Most records of the sample.
            fastest: Fastest records that are returned, too.
            tool: Who measured (:attr:`Record.tool`).
            same_tool: Whether only records of this tool count, or only those of others.
        """
        by_tool = RECORDS.c.tool == tool if same_tool else RECORDS.c.tool != tool
        lasting = _lasting_scripts(task_key, context_key, until)
        query = select(*_WITHOUT_SCRIPTS).where(*lasting, by_tool)
        sample = query.order_by(RECORDS.c.candidate_key).limit(most)
        best = query.where(RECORDS.c.ratio.is_not(None)).order_by(RECORDS.c.ratio.desc(), RECORDS.c.id).limit(fastest)
        rows = {row["id"]: row for each in (sample, best) for row in self._database.rows(each)}
        return tuple(read_record(rows[number], self.name) for number in sorted(rows))

    def trace_keys(self, task_key: str, context_key: str, *, until: int, tool: str) -> frozenset[str]:
        """Return the keys of the traces of all lasting records that a tool stored; see :meth:`sample`."""
        query = select(RECORDS.c.id, RECORDS.c.trace).where(
            *_lasting_scripts(task_key, context_key, until), RECORDS.c.tool == tool
        )
        return frozenset(read_trace_key(row, self.name) for row in self._database.rows(query))

    def failures(self, task_key: str, context_key: str) -> dict[str, int]:
        """Return the number of records of scripts by the class of their failure; that of the valid ones under ''."""
        query = select(func.coalesce(RECORDS.c.failure, "").label("kind"), func.count().label("number"))
        counted = query.where(*_scripts(task_key, context_key)).group_by(RECORDS.c.failure)
        return {str(row["kind"]): int(row["number"]) for row in self._database.rows(counted)}

    def not_checked(self, task_key: str, context_key: str) -> int:
        """Return the number of records of scripts that were timed, and whose numbers were not checked."""
        not_checked = RECORDS.c.verdict == Verdict.NOT_CHECKED.value, RECORDS.c.timing.is_not(None)
        query = select(RECORDS.c.id, RECORDS.c.timing).where(*_scripts(task_key, context_key), *not_checked)
        return sum(not read_timing(row, self.name).is_estimated for row in self._database.rows(query))

    def contexts(self, task_key: str) -> tuple[str, ...]:
        """Return the contexts that a task has records in, in the order of their first record."""
        query = select(RECORDS.c.context_key).where(RECORDS.c.task_key == task_key).group_by(RECORDS.c.context_key)
        return self._database.values(query.order_by(func.min(RECORDS.c.id)))

    def counts(self) -> dict[tuple[str, str], int]:
        """Return the number of all records by their task and context."""
        keys = RECORDS.c.task_key, RECORDS.c.context_key
        rows = self._database.rows(select(*keys, func.count().label("number")).group_by(*keys))
        return {(row["task_key"], row["context_key"]): row["number"] for row in rows}

    def find(self, task_key: str, context_key: str, candidate_key: str, *, since: int = 0) -> Record | None:
        """Return the record that makes measuring a candidate unnecessary, or None when this context has none.

        It is the first record whose outcome lasts or that is newer than ``since``; later records do not change it.

        Args:
            since: Number of a record. Failures up to it that may not last (:attr:`Outcome.is_lasting`) are skipped.
        """
        found = self._database.rows(_answers(task_key, context_key, candidate_key, since))
        return read_record(found[0], self.name) if found else None

    def best(self, task_key: str, context_key: str) -> Record | None:
        """Return the valid record of a script that is fastest against its baseline (largest ``ratio``).

        What was not checked is not valid (:attr:`Outcome.valid`). The script may be slower than the untuned code. Of
        records with the same ratio the first is returned. The ratio decides and not the median, because a machine's
        speed drifts between rounds.
        """
        query = (
            select(RECORDS)
            .where(*_scripts(task_key, context_key), RECORDS.c.ratio.is_not(None))
            .order_by(RECORDS.c.ratio.desc(), RECORDS.c.id)
        )
        with self._database.reading() as connection:
            rows = connection.execute(query, execution_options={"yield_per": 16}).mappings()
            records = (read_record(row, self.name) for row in rows)
            return next((record for record in records if record.outcome.valid is not None), None)

    # Programs

    def keep_program(self, program: StoredProgram) -> None:
        """Store what a run decided about a program and measured of it.

        What is known of the program in this context is kept beside that (:meth:`StoredProgram.beside`).
        """
        self._database.in_turn(lambda connection: self._keep_program(connection, program))

    def programs(self, context_key: str | None = None) -> tuple[StoredProgram, ...]:
        """Return the programs of a context, by default of all, the last one that was stored first."""
        query = select(PROGRAMS).order_by(PROGRAMS.c.id.desc())
        if context_key is not None:
            query = query.where(PROGRAMS.c.context_key == context_key)
        return tuple(read_program(row, self.name) for row in self._database.rows(query))

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

    def _settle_kept(self) -> None:
        while self._kept:
            record, since = self._kept[0]
            self._settled.append(self.settle(record, since=since))
            del self._kept[0]

    def _keep_program(self, connection: Connection, program: StoredProgram) -> None:
        row = connection.execute(select(PROGRAMS).where(PROGRAMS.c.key == program.key)).mappings().first()
        known = None if row is None else read_program(row, self.name)
        replace_row(connection, PROGRAMS, ("key",), program_row(program.beside(known)))

    def _check_tasks(self, records: Sequence[Record]) -> None:
        keys = sorted({record.task_key for record in records})
        known = self._database.values(select(TASKS.c.key).where(TASKS.c.key.in_(keys)))
        unknown = [key for key in keys if key not in known]
        if unknown:
            raise ValueError(f"{self.name} has no task {unknown[0]!r}: call add_task first")

    def _check_search(self, key: str) -> None:
        if self._database.value(select(SEARCHES.c.id).where(SEARCHES.c.key == key)) is None:
            raise ValueError(f"{self.name} has no search {key!r}: call begin_search first")


def _in_context(task_key: str, context_key: str) -> tuple[ColumnElement[bool], ...]:
    return RECORDS.c.task_key == task_key, RECORDS.c.context_key == context_key


def _scripts(task_key: str, context_key: str) -> tuple[ColumnElement[bool], ...]:
    return *_in_context(task_key, context_key), RECORDS.c.origin == Origin.SCRIPT.value


def _lasts() -> ColumnElement[bool]:
    return or_(RECORDS.c.failure.is_(None), RECORDS.c.failure.in_([kind.value for kind in LASTING]))


def _lasting_scripts(task_key: str, context_key: str, until: int) -> tuple[ColumnElement[bool], ...]:
    return *_in_context(task_key, context_key), RECORDS.c.id <= until, RECORDS.c.trace.is_not(None), _lasts()


def _answers(task_key: str, context_key: str, candidate_key: str, since: int) -> Select[Any]:
    """Return the query for the record that makes measuring a candidate unnecessary (:meth:`RecordStore.find`).

    The order is that of the unique index, which finds the candidate; in the order of all records SQLite looks at each
    record of the task.
    """
    return (
        select(RECORDS)
        .where(*_in_context(task_key, context_key), RECORDS.c.candidate_key == candidate_key)
        .where(or_(_lasts(), RECORDS.c.id > since))
        .order_by(RECORDS.c.attempt)
        .limit(1)
    )


def _settled(connection: Connection, record: Record, since: int) -> Record:
    found = connection.execute(_answers(*record.key[:3], since)).mappings().first()
    if found is not None:
        return read_record(found, store_name(connection.engine.url))
    task_key, context_key, candidate_key, _ = record.key
    same = *_in_context(task_key, context_key), RECORDS.c.candidate_key == candidate_key
    last = connection.scalar(select(func.max(RECORDS.c.attempt)).where(*same))
    stored = replace(record, attempt=0 if last is None else last + 1)
    connection.execute(insert(RECORDS), [record_row(stored)])
    return stored


def _prepare(engine: Engine, patience: Patience, *, read_only: bool) -> None:
    """Check the database, and make the tables where it has none; a database that is no record store is not changed."""
    name = store_name(engine.url)
    if is_file(engine.url):
        check_integrity(engine, patience)
    with transaction(engine, patience=patience) as connection:
        has_its_tables = has_tables(connection, name)
    if read_only:
        if not has_its_tables:
            raise UserError(f"{name} is empty: give a record store that a run has written to")
        return
    if is_file(engine.url):
        enable_wal(engine, timeout_s=patience.seconds)
    with transaction(engine, write=True, patience=patience) as connection:
        make_tables(connection, name)
