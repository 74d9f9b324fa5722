"""The store over all runs: where it is, what it gets and drops, and that a run never fails or waits because of it."""

from __future__ import annotations

import os
import pwd
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
from stored_records import CONTEXT, TASK, fill_store, make_record

from mlir_sched.database import RecordStore, bounded, engine, user_store
from mlir_sched.database.record import Record, StoredProgram, StoredTask
from mlir_sched.database.user_store import VARIABLE, UserStore, user_store_file
from mlir_sched.errors import Failure, FailureClass, UserError
from mlir_sched.outcome import Outcome


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data" / "mlir-sched" / "user.sqlite"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[RecordStore]:
    """Return the store of a run."""
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        yield store


def of_task(name: str, count: int = 1, first: int = 0) -> tuple[StoredTask, list[Record]]:
    """Return a task with some records of 6 kB."""
    records = [make_record(f"{name}{n}", task_key=name, script="x" * 6000) for n in range(first, first + count)]
    return replace(TASK, key=name), records


def stored(file: Path) -> dict[str, list[str]]:
    """Return the keys of the candidates of every task, in order."""
    with RecordStore.open(file, read_only=True) as store:
        return {t.key: [r.candidate_key for r in store.records(t.key, CONTEXT)] for t in store.tasks()}


def test_what_is_added_is_on_the_disk_at_once_and_once(file: Path, own: RecordStore) -> None:
    task, (first, second) = of_task("a", 2)
    with UserStore(file, own) as users:
        assert not file.exists()
        users.add(task, [])
        assert not file.exists(), "a run without records makes none"
        users.add(task, [first])
        with RecordStore.open(file, read_only=True) as reader:
            assert reader.tasks() == (task,)
            assert reader.records("a", CONTEXT) == (first,)
        users.add(task, [replace(first, script="measured again"), second])
        assert users.note == ""
    with RecordStore.open(file, read_only=True) as reader:
        assert reader.records("a", CONTEXT) == (first, second)


def test_what_lasts_is_added_behind_failures_that_may_not(file: Path, own: RecordStore) -> None:
    task, (right,) = of_task("a")
    crashed = replace(right, outcome=Outcome(None, Failure(FailureClass.RUN_CRASH, "killed")))
    with UserStore(file, own) as users:
        for record in (crashed, crashed, right, right, crashed):
            users.add(task, [record])
        assert users.note == ""
    with RecordStore.open(file, read_only=True) as reader:
        assert reader.records("a", CONTEXT) == (crashed, replace(right, attempt=1))


def test_a_removed_record_takes_no_number_from_others(own: RecordStore) -> None:
    failed = Outcome(None, Failure(FailureClass.RUN_CRASH, "killed"))
    own.add_task(TASK)
    for _ in range(3):
        own.settle(make_record("a", failed), since=own.last_record())
    assert own.file is not None
    run_sql(own.file, "DELETE FROM records WHERE attempt = 1")
    assert own.settle(make_record("a", failed), since=own.last_record()).attempt == 3


def test_nothing_is_added_once_runs_go_on_with_the_store(file: Path, own: RecordStore) -> None:
    with UserStore(file, own) as users:
        users.add(*of_task("a"))
        with RecordStore.open(file) as of_a_run:
            of_a_run.begin_search("search")
        users.add(*of_task("b"))
        assert "is the store of runs" in users.note
    assert list(stored(file)) == ["a"]


def test_tasks_that_others_stored_are_not_dropped(
    file: Path, own: RecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_store, "MOST_BYTES", 500_000)
    file.parent.mkdir(parents=True)
    with RecordStore.open(file) as store:
        task, records = of_task("others", 20)
        store.add_task(task)
        store.add(records)
    with UserStore(file, own) as users:
        users.begin_from(["others"])
        for name in "abcd":
            users.add(*of_task(name, 20))
    assert list(stored(file)) == ["others", "d"]


def test_runs_at_the_same_time_add_to_one_store(file: Path, own: RecordStore) -> None:
    with UserStore(file, own) as one, UserStore(file, own) as other:
        for n in range(10):
            (one, other)[n % 2].add(*of_task("ab"[n % 2], first=n))
        assert (one.note, other.note) == ("", "")
    assert stored(file) == {"a": [f"a{n}" for n in range(0, 10, 2)], "b": [f"b{n}" for n in range(1, 10, 2)]}


@pytest.fixture
def holder(file: Path, own: RecordStore) -> Iterator[sqlite3.Connection]:
    """Return a connection that holds the store for itself."""
    with UserStore(file, own) as users:
        users.add(*of_task("a"))
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.close()


def test_what_a_held_store_does_not_take_is_added_later(
    file: Path, own: RecordStore, holder: sqlite3.Connection
) -> None:
    with UserStore(file, own) as users:
        began = time.monotonic()
        for n in (1, 2):
            users.add(*of_task("a", first=n))
        assert time.monotonic() - began < 1.0, "no run waits for it"
        assert stored(file) == {"a": ["a0"]}
        holder.execute("ROLLBACK")
        users.add(*of_task("a", first=3))
        assert stored(file) == {"a": ["a0", "a1", "a2", "a3"]}
        users.finish(wait=True)
        assert users.note == ""


def test_the_end_of_a_search_waits_a_little_for_a_held_store(
    file: Path, own: RecordStore, holder: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_store, "LAST_ATTEMPT_S", 0.3)
    with UserStore(file, own) as users:
        users.add(*of_task("a", first=1))
        began = time.monotonic()
        users.finish(wait=True)
        assert 0.3 <= time.monotonic() - began < 2.0
        assert "another process holds it" in users.note
        holder.execute("ROLLBACK")
        users.add(*of_task("a", first=2))
    assert stored(file) == {"a": ["a0"]}, "one note, and nothing else"


def run_sql(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


def a_text(file: Path) -> None:
    file.write_text("this is not a database, but it is longer than the magic")


def a_damaged_store(file: Path) -> None:
    fill_store(file, 100)
    content = bytearray(file.read_bytes())
    content[4096 * 2 : 4096 * 20] = b"\xa5" * (4096 * 18)
    file.write_bytes(content)


def a_database_of_another_program(file: Path) -> None:
    run_sql(file, "CREATE TABLE bookmarks (url TEXT)")


def a_store_of_another_schema(file: Path) -> None:
    fill_store(file, 1)
    run_sql(file, "UPDATE mlir_sched_schema SET digest = '0123456789ab'")


def the_store_of_a_run(file: Path) -> None:
    fill_store(file, 1)
    with RecordStore.open(file) as store:
        store.begin_search("search")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (a_text, "not an SQLite database"),
        (a_damaged_store, "damaged"),
        (a_database_of_another_program, "not a record store"),
        (a_store_of_another_schema, "has another schema"),
        (the_store_of_a_run, "is the store of runs"),
    ],
)
def test_a_file_that_is_no_store_over_all_runs_costs_a_note_and_stays_as_it_is(
    file: Path, own: RecordStore, make: Callable[[Path], None], why: str
) -> None:
    file.parent.mkdir(parents=True)
    make(file)
    content = file.read_bytes()
    assert why in note_of(file, own)
    assert file.read_bytes() == content


def note_of(file: Path, own: RecordStore) -> str:
    """Return the note of a run, which is one line and the same after everything that follows."""
    with UserStore(file, own) as users:
        users.add(*of_task("b"))
        note = users.note
        users.add(*of_task("c"))
        users.finish(wait=True)
    assert users.note == note
    assert note.startswith("not all that this run measured is in your store over all runs: ")
    assert "\n" not in note
    return note


def test_a_place_where_no_store_can_be_costs_a_note(tmp_path: Path, own: RecordStore) -> None:
    assert "the folder cannot be made" in note_of(Path("/proc/mlir-sched/user.sqlite"), own)
    (tmp_path / "a_file").touch()
    assert "the folder cannot be made" in note_of(tmp_path / "a_file" / "user.sqlite", own)
    assert "is a directory" in note_of(tmp_path, own)


def test_a_store_that_cannot_be_written_costs_a_note(
    file: Path, own: RecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with UserStore(file, own) as users:
        users.add(*of_task("a"))
    monkeypatch.setattr(engine, "_open_mode", lambda *_, **__: "mode=ro")  # permissions do not bind the superuser
    assert "it cannot be written" in note_of(file, own)
    assert stored(file) == {"a": ["a0"]}


def test_a_folder_that_may_not_be_entered_costs_a_note(
    file: Path, own: RecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.parent.mkdir(parents=True)
    is_dir = Path.is_dir

    def refused(path: Path) -> bool:
        if path == file:  # permissions do not bind the superuser
            raise PermissionError(13, "Permission denied", str(path))
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", refused)
    assert "Permission denied" in note_of(file, own)


def test_a_full_disk_costs_a_note(file: Path, own: RecordStore) -> None:
    with UserStore(file, own) as users:
        users.add(*of_task("a"))
        assert users._store is not None
        with users._store._database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count = 30")
        users.add(*of_task("b", 100))
        assert "make room" in users.note
    assert stored(file) == {"a": ["a0"]}


def test_the_tasks_used_longest_ago_make_room(file: Path, own: RecordStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_store, "MOST_BYTES", 500_000)
    known = {name: of_task(name, 20) for name in "abcde"}  # about 160 kB each
    with UserStore(file, own) as users:
        for name in "abc":
            users.add(*known[name])
        assert list(stored(file)) == ["b", "c"]
        users.add(*known["b"])  # which is used again without a new record
        users.add(*known["d"])
        assert list(stored(file)) == ["b", "d"]
        users.add(*known["a"])
        assert list(stored(file)) == ["d", "a"], "what was dropped may come back"
        for n in range(20, 200):
            users.add(*of_task("e", first=n))
        assert users.note == ""
    kept = stored(file)
    assert len(kept.get("e", ())) < 180, "one task alone is bounded, too"
    assert file.stat().st_size < 500_000 + 200_000


def test_what_a_run_begins_from_is_used_with_what_it_adds_next(
    file: Path, own: RecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_store, "MOST_BYTES", 500_000)
    known = {name: of_task(name, 20) for name in "abcd"}  # about 160 kB each
    with UserStore(file, own) as users:
        users.add(*known["a"])
        users.add(*known["b"])
        users.begin_from(["a", "unknown"])
        users.add(*known["c"])
        assert list(stored(file)) == ["a", "c"]
        users.add(*known["d"])
        assert list(stored(file)) == ["c", "d"], "it was used once"


def test_programs_are_added_too_and_only_the_last_ones_stay(
    file: Path, own: RecordStore, holder: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "MOST_PROGRAMS", 3)
    programs = [StoredProgram(CONTEXT, (f"task {n}",), {}, 1.5, {"f": 1.0}, {"O3": 0.5}) for n in range(5)]
    with UserStore(file, own) as users:
        for program in programs[:3]:
            users.add_program(program)
        holder.execute("ROLLBACK")
        users.add(*of_task("a"))
        for program in programs[3:]:
            users.add_program(program)
        assert users.note == ""
    with RecordStore.open(file, read_only=True) as store:
        assert store.programs() == (programs[4], programs[3], programs[2])


def test_a_run_with_the_same_store_adds_nothing_twice(own: RecordStore) -> None:
    assert own.file is not None
    with UserStore(own.file.parent / "." / own.file.name, own) as users:
        users.add(*of_task("a"))
        users.finish()
    assert (users.note, own.tasks()) == ("", ())


def test_the_tests_have_no_store_over_all_runs() -> None:
    assert user_store_file() is None


@pytest.fixture
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Have a user's data folder, and nothing else that says where the store is."""
    for name in (VARIABLE, "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return monkeypatch


def test_an_option_comes_before_the_variable_and_that_before_the_data_folder(
    nothing_set: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert user_store_file() == tmp_path / "mlir-sched" / "records.sqlite"
    assert user_store_file("off") is None
    nothing_set.setenv("CI", "true")
    assert user_store_file() is None
    assert user_store_file("x.sqlite") == Path("x.sqlite")
    nothing_set.setenv(VARIABLE, "~/y.sqlite")
    assert user_store_file() == Path.home() / "y.sqlite"
    assert user_store_file(tmp_path) == tmp_path
    nothing_set.setenv(VARIABLE, "OFF")
    assert user_store_file() is None
    assert user_store_file("x.sqlite") == Path("x.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_a_user_without_a_home_has_none(nothing_set: pytest.MonkeyPatch) -> None:
    def unknown(number: int) -> NoReturn:
        raise KeyError(number)

    for name in ("XDG_DATA_HOME", "HOME"):
        nothing_set.delenv(name)
    assert os.path.expanduser("~") != "~"  # noqa: PTH111  # by the user's number
    nothing_set.setattr(pwd, "getpwuid", unknown)
    assert user_store_file() is None


def test_a_home_that_is_not_there_is_refused() -> None:
    with pytest.raises(UserError, match="~nobody-here/x: there is no such home folder"):
        user_store_file("~nobody-here/x")


def test_a_url_is_refused() -> None:
    with pytest.raises(UserError, match="is a file, or off, and none of postgresql; --store takes a URL"):
        user_store_file("postgresql://user:secret@host/name")


def test_the_variable_names_one_store_for_all_folders(nothing_set: pytest.MonkeyPatch) -> None:
    nothing_set.setenv(VARIABLE, "records.sqlite")
    with pytest.raises(UserError, match=r"MLIR_SCHED_STORE is records[.]sqlite: give a whole path"):
        user_store_file()
