"""What a record store refuses, and leaves as it was."""

import json
import os
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from stored_records import CONTEXT, TASK, fill_store, make_record

from mlir_sched.database import RecordStore
from mlir_sched.database.record import StoredProgram
from mlir_sched.database.work_cost import WorkCost, WorkKind
from mlir_sched.errors import UserError
from mlir_sched.outcome import Verdict

TIMING = {"median_s": 1.0, "low_s": 1.0, "high_s": 1.0, "samples": 9, "ratio": 1.0, "ratio_low": 1.0, "ratio_high": 1.0}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"this is not a database, but it is longer than the magic", "not an SQLite database"),
        (b"SQLite format 3\0" + bytes(range(256)) * 16, "not an SQLite database, or it is damaged"),
        (b"SQLite", "not an SQLite database"),
    ],
)
def test_a_file_that_is_no_database_is_refused_and_untouched(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        RecordStore.open(path)
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def test_a_damaged_store_is_refused_and_untouched(path: Path) -> None:
    fill_store(path, 100)
    content = bytearray(path.read_bytes())
    content[4096 * 2 : 4096 * 20] = b"\xa5" * (4096 * 18)
    path.write_bytes(content)
    with pytest.raises(UserError, match="damaged"):
        RecordStore.open(path)
    assert path.read_bytes() == content


def test_a_truncated_store_is_refused_and_untouched(path: Path) -> None:
    fill_store(path, 100)
    content = path.read_bytes()[: 4096 * 10 + 7]
    path.write_bytes(content)
    with pytest.raises(UserError, match="damaged"):
        RecordStore.open(path)
    assert path.read_bytes() == content


def test_text_that_is_damaged_is_one_line_without_its_content(path: Path) -> None:
    with RecordStore.open(path) as store:
        store.add_task(TASK)
        store.add([make_record("a", script="a script\nof a full disk\n")])
    content = path.read_bytes().replace(b"a script\n", b"a scrip\xb4\n")
    path.write_bytes(content)
    with RecordStore.open(path, read_only=True) as store, pytest.raises(UserError, match="it is damaged") as error:
        store.records(TASK.key, CONTEXT)
    assert type(error.value) is UserError, "a word of the content is no outage"
    assert "\n" not in str(error.value)
    assert path.read_bytes() == content


def test_another_programs_database_is_refused_and_untouched(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    content = path.read_bytes()
    with pytest.raises(UserError, match="not a record store of mlir-sched"):
        RecordStore.open(path)
    assert path.read_bytes() == content


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    with RecordStore.open(path) as store:
        assert store.tasks() == ()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing/store.db", "directory .*missing does not exist"),
        (".", "is a directory"),
        ("/proc/store.db", "cannot be opened"),
        ("nonsense://host/x", "no driver for"),
        ("://", "neither a path nor a URL"),
        ("sqlite:///x.db?mode=ro", "options are not supported"),
    ],
)
def test_a_place_where_no_store_can_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=message):
        RecordStore.open(name, timeout_s=0.1)
    assert list(tmp_path.iterdir()) == []


def test_a_password_in_a_url_is_not_shown() -> None:
    with pytest.raises(UserError) as error:
        RecordStore.open("nonsense://user:geheim@host/x")
    assert "geheim" not in str(error.value)


def test_reading_only_needs_a_store_and_changes_nothing(path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        RecordStore.open(path, read_only=True)
    fill_store(path, 1)
    content = path.read_bytes()
    with RecordStore.open(path, read_only=True) as store:
        with pytest.raises(UserError, match="cannot be written"):
            store.add([make_record("new")])
        assert len(store.records(TASK.key, CONTEXT)) == 1
    assert path.read_bytes() == content


def test_a_store_in_a_directory_that_cannot_be_written_can_be_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_store(path, 3)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with RecordStore.open(path, read_only=True) as store:
        assert len(store.records(TASK.key, CONTEXT)) == 3
        assert list(path.parent.iterdir()) == [path]


INT_RANGE = {"name": "tile", "value": 1, "distribution": {"kind": "int_range", "low": 0, "high": 10**12}}


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("trace", json.dumps({"sketch": "a", "decisions": [INT_RANGE]}), "1000000000001 values"),
        ("trace", json.dumps({"sketch": "a", "decisions": [{"name": ["b"]}]}), "not a trace"),
        ("trace", "[" * 100_000, "cannot be read"),
        ("timing", '{"median_s": 1.0}', "not a timing"),
        ("timing", json.dumps(TIMING | {"colour": 1}), "not a timing"),
        ("timing", json.dumps(TIMING | {"ratio": -1.0}), "ratio is -1.0"),
        ("timing", json.dumps(TIMING | {"median_s": float("nan")}), "median_s is nan"),
        ("timing", json.dumps(TIMING | {"high_s": 0.0}), "high_s is 0.0"),
        ("timing", json.dumps(TIMING | {"low_s": 9.0}), "ends before it begins"),
        ("timing", json.dumps(TIMING | {"samples": "many"}), "samples is 'many'"),
        ("timing", "[1, 2]", "not a timing"),
        ("failure", "bad luck", "bad luck"),
    ],
)
def test_a_record_that_no_tuning_run_can_have_written_is_one_error(
    path: Path, column: str, value: str, message: str
) -> None:
    fill_store(path, 2)
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE records SET {column} = ? WHERE id = 2", [value])
    with (
        RecordStore.open(path) as store,
        pytest.raises(UserError, match=r"record number 2 cannot be read .*another store") as caught,
    ):
        store.records(TASK.key, CONTEXT)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [("dispatch", "{}", "no Dispatch: ops: Field required"), ("target", "[]", "no Target: "), ("flags", "3", "int")],
)
def test_a_task_that_no_tuning_run_can_have_written_is_one_error(
    path: Path, column: str, value: str, message: str
) -> None:
    fill_store(path, 1)
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE tasks SET {column} = ?", [value])
    with (
        RecordStore.open(path) as store,
        pytest.raises(UserError, match=rf"task number 1 cannot be read \(.*{message}.*another store"),
    ):
        store.tasks()


@pytest.mark.parametrize(
    ("table", "column", "value", "read"),
    [
        ("records", "trace", '{"a', lambda store: store.best(TASK.key, CONTEXT)),
        ("records", "timing", "[1, 2]", lambda store: store.not_checked(TASK.key, CONTEXT)),
        ("programs", "decisions", '{"a', lambda store: store.programs(CONTEXT)),
        ("programs", "task_keys", "3", lambda store: store.programs(CONTEXT)),
        ("programs", "features", "3", lambda store: store.programs(CONTEXT)),
        ("programs", "features", '{"a": Infinity}', lambda store: store.programs()),
        ("programs", "variants", '{"a": -1}', lambda store: store.programs(CONTEXT)),
        ("programs", "algorithms", '{"a": 0}', lambda store: store.programs(CONTEXT)),
        ("programs", "algorithms", '{"a": "b"}', lambda store: store.programs()),
        ("run_decisions", "value", '{"a', lambda store: store.decided("a decision")),
        ("work_costs", "kind", "bad luck", lambda store: store.work_costs()),
    ],
)
def test_a_row_that_no_tuning_run_can_have_written_is_one_error(
    path: Path, table: str, column: str, value: str, read: Callable[[RecordStore], object]
) -> None:
    with RecordStore.open(path) as store:
        store.add_task(TASK)
        right, unknown = make_record("a"), make_record("b")
        store.add([right, replace(unknown, outcome=replace(unknown.outcome, verdict=Verdict.NOT_CHECKED))])
        store.keep_program(StoredProgram(CONTEXT, (TASK.key,), {}, 1.5))
        store.decide("a decision", lambda: 1)
        store.add_work_cost("a run", WorkCost(WorkKind.BUILD, "default", 1, 1.0))
        read(store)
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE {table} SET {column} = ?", [value])
    with (
        RecordStore.open(path) as store,
        pytest.raises(UserError, match=r"number \d cannot be read \(.*another store"),
    ):
        read(store)
