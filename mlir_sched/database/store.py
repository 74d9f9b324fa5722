"""The record store: every measured candidate, kept in a database that survives kill -9 and can be read during a run.

When ``add`` or ``settle`` returns, its records are on the disk. A record is never changed; a second record of the same
task, context and candidate is stored only where the first is a failure that may not last, so that a candidate has one
measurement.
"""

import contextlib
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Self

from sqlalchemy import func, literal, select

from mlir_sched.database.bounded import settle_bounded
from mlir_sched.database.engine import (
    Patience,
    StoreOutageError,
    is_file,
    make_engine,
    parse_url,
    silent,
    transaction,
)
from mlir_sched.database.record import Record, StoredProgram, StoredTask
from mlir_sched.database.schema import (
    PROGRAMS,
    RECORDS,
    TASKS,
    read_program,
    read_record,
    read_task,
    read_timing,
    read_trace_key,
    record_row,
    task_row,
)
from mlir_sched.database.schema_version import prepare
from mlir_sched.database.statements import Statements
from mlir_sched.database.stored_records import answers, in_context, keep_program, lasting_scripts, scripts_in, settled
from mlir_sched.database.stored_runs import StoredRuns
from mlir_sched.errors import UserError
from mlir_sched.outcome import Verdict

_WITHOUT_SCRIPTS = (*(column for column in RECORDS.c if column is not RECORDS.c.script), literal("").label("script"))


class RecordStore(StoredRuns):
    """An open record store; made by :meth:`open`, closed by :meth:`close` or at the end of a ``with`` block.

    Every method may raise a UserError when the database refuses: locked for too long or disk full (StoreOutageError),
    damaged. A store must not be used in a forked child; open another one there.
    """

    def __init__(self, database: Statements) -> None:
        super().__init__(database)
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
            prepare(engine, patience, read_only=read_only)
        except BaseException:
            engine.dispose()
            raise
        return cls(Statements(engine, patience))

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
        return self._database.in_turn(lambda connection: settled(connection, record, since))

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
        found, self._settled = self._settled, []
        return tuple(found)

    def settle_bounded(
        self,
        measured: Iterable[tuple[StoredTask, Sequence[Record]]],
        most_bytes: int,
        programs: Sequence[StoredProgram] = (),
        begun_from: Collection[str] = (),
    ) -> None:
        """Settle what a run measured in one call, all or none, and drop what is oldest; see :func:`settle_bounded`.

        Raises:
            UserError: Runs go on with the store, so that nothing may be dropped from it.
        """
        measured = tuple(measured)
        self._database.in_turn(
            lambda connection: settle_bounded(connection, measured, most_bytes, programs, begun_from)
        )

    def records(
        self, task_key: str, context_key: str, *, until: int | None = None, scripts: bool = True
    ) -> tuple[Record, ...]:
        """Return the records of a task in a context, in insertion order.

        Args:
            until: Number of the last record to return; by default all records are returned.
            scripts: Whether they have the texts of their scripts, which are most of what is read.
        """
        columns = RECORDS.c if scripts else _WITHOUT_SCRIPTS
        query = select(*columns).where(*in_context(task_key, context_key)).order_by(RECORDS.c.id)
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
        lasting = lasting_scripts(task_key, context_key, until)
        query = select(*_WITHOUT_SCRIPTS).where(*lasting, by_tool)
        sample = query.order_by(RECORDS.c.candidate_key).limit(most)
        best = query.where(RECORDS.c.ratio.is_not(None)).order_by(RECORDS.c.ratio.desc(), RECORDS.c.id).limit(fastest)
        rows = {row["id"]: row for each in (sample, best) for row in self._database.rows(each)}
        return tuple(read_record(rows[number], self.name) for number in sorted(rows))

    def trace_keys(self, task_key: str, context_key: str, *, until: int, tool: str) -> frozenset[str]:
        """Return the keys of the traces of all lasting records that a tool stored; see :meth:`sample`."""
        query = select(RECORDS.c.id, RECORDS.c.trace).where(
            *lasting_scripts(task_key, context_key, until), RECORDS.c.tool == tool
        )
        return frozenset(read_trace_key(row, self.name) for row in self._database.rows(query))

    def failures(self, task_key: str, context_key: str) -> dict[str, int]:
        """Return the number of records of scripts by the class of their failure; that of the valid ones under ''."""
        query = select(func.coalesce(RECORDS.c.failure, "").label("kind"), func.count().label("number"))
        counted = query.where(*scripts_in(task_key, context_key)).group_by(RECORDS.c.failure)
        return {str(row["kind"]): int(row["number"]) for row in self._database.rows(counted)}

    def not_checked(self, task_key: str, context_key: str) -> int:
        """Return the number of records of scripts that were timed, and whose numbers were not checked."""
        not_checked = RECORDS.c.verdict == Verdict.NOT_CHECKED.value, RECORDS.c.timing.is_not(None)
        query = select(RECORDS.c.id, RECORDS.c.timing).where(*scripts_in(task_key, context_key), *not_checked)
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
        found = self._database.rows(answers(task_key, context_key, candidate_key, since))
        return read_record(found[0], self.name) if found else None

    def best(self, task_key: str, context_key: str) -> Record | None:
        """Return the valid record of a script that is fastest against its baseline (largest ``ratio``).

        What was not checked is not valid (:attr:`Outcome.valid`). The script may be slower than the untuned code. Of
        records with the same ratio the first is returned. The ratio decides and not the median, because a machine's
        speed drifts between rounds.
        """
        query = (
            select(RECORDS)
            .where(*scripts_in(task_key, context_key), RECORDS.c.ratio.is_not(None))
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
        self._database.in_turn(lambda connection: keep_program(connection, program))

    def programs(self, context_key: str | None = None) -> tuple[StoredProgram, ...]:
        """Return the programs of a context, by default of all, the last one that was stored first."""
        query = select(PROGRAMS).order_by(PROGRAMS.c.id.desc())
        if context_key is not None:
            query = query.where(PROGRAMS.c.context_key == context_key)
        return tuple(read_program(row, self.name) for row in self._database.rows(query))

    def _settle_kept(self) -> None:
        while self._kept:
            record, since = self._kept[0]
            self._settled.append(self.settle(record, since=since))
            del self._kept[0]

    def _check_tasks(self, records: Sequence[Record]) -> None:
        keys = sorted({record.task_key for record in records})
        known = self._database.values(select(TASKS.c.key).where(TASKS.c.key.in_(keys)))
        unknown = [key for key in keys if key not in known]
        if unknown:
            raise ValueError(f"{self.name} has no task {unknown[0]!r}: call add_task first")
