"""A record store that several processes use, and what it survives."""

import random
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from folders import SUPPORT
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError
from stored_records import CONTEXT, TASK, fill_store, make_record

from mlir_sched.database import RecordStore, statements, stored_records
from mlir_sched.database.record import StoredProgram
from mlir_sched.errors import UserError

WRITER = SUPPORT / "store_writer.py"


@pytest.mark.alone
@pytest.mark.parametrize("lock", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_locked_store_is_a_user_error_after_the_timeout(path: Path, lock: str) -> None:
    fill_store(path, 1)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute(lock)
    began = time.monotonic()
    with pytest.raises(UserError, match="another process holds it"), RecordStore.open(path, timeout_s=0.3) as store:
        store.add([make_record("new")])
    assert 0.3 <= time.monotonic() - began < 5
    holder.execute("ROLLBACK")
    holder.close()
    fill_store(path, 2)


def test_a_writer_waits_for_another_ones_transaction(path: Path) -> None:
    with RecordStore.open(path) as first, RecordStore.open(path) as second:
        first.add_task(TASK)
        for index in range(40):
            store = (first, second)[index % 2]
            assert store.add([make_record(f"{index}")])
            assert not (second, first)[index % 2].add([make_record(f"{index}")])
        assert first.records(TASK.key, CONTEXT) == second.records(TASK.key, CONTEXT)


@pytest.mark.promise
def test_processes_that_make_and_write_one_store_at_once_lose_nothing(path: Path) -> None:
    writers = [start_writer(path, tag, 20) for tag in "abc"]
    for writer in writers:
        writer.communicate(timeout=60)
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert stored_rounds(path) == {(tag, round_): 16 for tag in "abc" for round_ in range(20)}


@pytest.mark.promise
def test_a_reader_sees_whole_rounds_while_a_writer_works(path: Path) -> None:
    seen: list[int] = []
    with start_writer(path, "a", 100) as writer:
        assert writer.stdout is not None
        for _ in range(3):
            writer.stdout.readline()
        with RecordStore.open(path, read_only=True, timeout_s=1) as store:
            while writer.poll() is None:
                seen.append(len(store.records("task", "threads=1")))
            seen.append(len(store.records("task", "threads=1")))
    assert len(set(seen)) > 3
    assert seen == sorted(seen)
    assert all(count % 16 == 0 for count in seen)
    assert seen[-1] == 1600


@pytest.mark.promise
@pytest.mark.sweep("landing")
@pytest.mark.parametrize("seed", range(12))
def test_kill_at_any_instant_keeps_every_record_whose_add_returned(path: Path, seed: int) -> None:
    """The first store is killed while it is made or young; the next ones go on with what the last one left."""
    delays = random.Random(seed)
    acknowledged: set[tuple[str, int]] = set()
    for tag in ("a", "b"):
        writer = start_writer(path, tag, 10_000)
        time.sleep(delays.uniform(0, (0.02, 0.1, 0.5)[seed % 3]))
        writer.kill()
        output, _ = writer.communicate()
        acknowledged |= {(tag, int(line)) for line in output.splitlines()}
        if not path.exists():
            continue
        if acknowledged:
            assert acknowledged <= set(stored_rounds(path, read_only=True))
        rounds = stored_rounds(path)
        assert acknowledged <= set(rounds)
        assert set(rounds.values()) <= {16}


def test_a_full_disk_is_a_user_error_and_keeps_what_was_stored(path: Path) -> None:
    fill_store(path, 2)
    with RecordStore.open(path) as store:
        with store._database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count = 30")
        with pytest.raises(UserError, match="make room"):
            store.add([make_record(f"new{index}", script="x" * 9000) for index in range(100)])
        assert len(store.records(TASK.key, CONTEXT)) == 2


def test_a_store_can_be_copied_once_it_is_closed(path: Path) -> None:
    fill_store(path, 5)
    assert list(path.parent.iterdir()) == [path]
    copy = shutil.copy(path, path.with_name("copy.db"))
    with RecordStore.open(copy) as store:
        assert len(store.records(TASK.key, CONTEXT)) == 5


def test_a_thousand_records_added_in_rounds_come_back_in_their_order(store: RecordStore) -> None:
    records = [make_record(f"{index:x}", script="x" * 6000) for index in range(1000)]
    for start in range(0, len(records), 16):
        store.add(records[start : start + 16])
    assert store.records(TASK.key, CONTEXT) == tuple(records)


def test_a_program_that_another_run_stores_at_the_same_moment_is_kept_beside_it(
    store: RecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server refuses the second of two transactions that insert a key; SQLite has them one after the other."""
    refusals = [IntegrityError("INSERT", {}, Exception("duplicate key"))]

    def replace_row(connection: Connection, *what: Any) -> None:
        if refusals:
            raise refusals.pop()
        statements.replace_row(connection, *what)

    monkeypatch.setattr(stored_records, "replace_row", replace_row)
    program = StoredProgram(CONTEXT, (TASK.key,), {}, 1.5)
    store.keep_program(program)
    assert store.programs() == (program,)
    assert not refusals


def start_writer(path: Path, tag: str, rounds: int) -> "subprocess.Popen[str]":
    """Start a writer and wait until it is about to open the store."""
    command = [sys.executable, str(WRITER), str(path), tag, str(rounds)]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    return writer


def stored_rounds(path: Path, *, read_only: bool = False) -> dict[tuple[str, int], int]:
    """Return the number of records of every writer's round."""
    rounds: dict[tuple[str, int], int] = {}
    with RecordStore.open(path, read_only=read_only) as store:
        for record in store.records("task", "threads=1"):
            tag = record.candidate_key.split("-")[0]
            rounds[tag, record.round] = rounds.get((tag, record.round), 0) + 1
    return rounds
