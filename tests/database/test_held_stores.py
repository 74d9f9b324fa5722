"""A store that another process holds is waited for; Ctrl-C ends the wait, and what was measured is kept meanwhile."""

from __future__ import annotations

import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from stored_records import CONTEXT, TASK, fill_store, make_record

from mlir_sched.database import RecordStore, engine
from mlir_sched.database.engine import ATTEMPT_S, StoreOutageError

NEW = [make_record(f"new{number}") for number in range(3)]


@pytest.fixture
def holder(path: Path) -> Iterator[sqlite3.Connection]:
    """Return another connection to a store."""
    fill_store(path, 1)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    yield connection
    connection.close()


@pytest.fixture
def held(path: Path, holder: sqlite3.Connection) -> Iterator[RecordStore]:
    """Return a store whose lock for writers another connection holds."""
    with RecordStore.open(path) as store:
        holder.execute("BEGIN IMMEDIATE")
        yield store


def test_a_held_store_is_waited_for_and_the_user_is_told_once(
    held: RecordStore, holder: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "NOTE_S", 0.0)
    notes: list[str] = []
    held.wait_for_locks(60.0, notes.append)
    threading.Timer(2.2 * ATTEMPT_S, holder.execute, ("ROLLBACK",)).start()
    assert held.settle(NEW[0]) == NEW[0]
    (note,) = notes
    assert note.startswith(f"waiting for the record store {held.name}")


def test_a_store_that_is_held_when_it_is_opened_is_waited_for(
    path: Path, holder: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "NOTE_S", 0.0)
    notes: list[str] = []
    holder.execute("BEGIN EXCLUSIVE")
    threading.Timer(2.2 * ATTEMPT_S, holder.execute, ("ROLLBACK",)).start()
    with RecordStore.open(path, timeout_s=60.0, note=notes.append) as store:
        assert len(store.records(TASK.key, CONTEXT)) == 1
        assert all(note.startswith(f"waiting for the record store {store.name}") for note in notes)
    assert notes


def test_ctrl_c_ends_the_wait(held: RecordStore) -> None:
    held.wait_for_locks(60.0)
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.1, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            held.settle(NEW[0])
    finally:
        signal.signal(signal.SIGINT, earlier)
    assert time.monotonic() - began < 10 * ATTEMPT_S


def test_what_a_held_store_does_not_take_is_kept_in_memory_and_stored_in_order(
    held: RecordStore, holder: sqlite3.Connection
) -> None:
    held.wait_for_locks(0.0)
    assert [held.keep(record) for record in NEW[:2]] == NEW[:2]
    assert held.find(*NEW[0].key[:3]) is None
    with pytest.raises(StoreOutageError, match="another process holds it"):
        held.settle_kept()
    holder.execute("ROLLBACK")
    assert held.keep(NEW[2]) == NEW[2]
    assert held.settle_kept() == tuple(NEW)
    assert held.settle_kept() == ()
    assert held.records(TASK.key, CONTEXT)[-3:] == tuple(NEW)


def test_what_is_kept_is_stored_when_the_store_is_closed(
    held: RecordStore, holder: sqlite3.Connection, path: Path
) -> None:
    held.keep(NEW[0])
    holder.execute("ROLLBACK")
    held.close()
    with RecordStore.open(path, read_only=True) as again:
        assert again.records(TASK.key, CONTEXT)[-1] == NEW[0]


def test_another_process_may_settle_first_what_is_kept(
    held: RecordStore, holder: sqlite3.Connection, path: Path
) -> None:
    held.keep(NEW[0])
    holder.execute("ROLLBACK")
    theirs = make_record("new0", script="theirs")
    with RecordStore.open(path) as other:
        other.settle(theirs)
    assert held.settle_kept() == (theirs,)
