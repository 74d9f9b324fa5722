"""The record store: what it keeps, what it refuses, and what it survives."""

import json
import math
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from folders import DATA, TESTS

from mlir_sched.database import RecordStore
from mlir_sched.database import schema as database_schema
from mlir_sched.database.record import Origin, Record, StoredTask, context_key, script_key
from mlir_sched.database.schema import SCHEMA_VERSION
from mlir_sched.errors import Failure, FailureClass, UserError
from mlir_sched.outcome import Outcome, Timing
from mlir_sched.sampling import Categorical, ComputeLocation, IntRange, PerfectTile, Permutation, PowerOfTwo
from mlir_sched.trace import Recorder, Trace

WRITER = TESTS / "store_writer.py"
TASK = StoredTask("task", "main_dispatch_0", "linalg.matmul 64x64x64", "target", "cpu", "3.13.0", ("-O3", "--x=ä b"))
CONTEXT = context_key(threads=1, cpu="test")


def draw_trace(seed: int) -> Trace:
    recorder = Recorder(rng=np.random.default_rng(seed))
    recorder.decide("tile", PerfectTile(1024, 3, max_innermost=64, multiple_of=2))
    recorder.decide("kind", Categorical(("a", "b"), (1.0, 1 / 3)))
    recorder.decide("order", Permutation(("i", "j", "k")))
    recorder.decide("unroll", IntRange(1, 9, 2))
    recorder.decide("lanes", PowerOfTwo(1, 64))
    recorder.decide("at", ComputeLocation(("root", "j")))
    return recorder.finish("contraction")


def timed(seed: int, *, ratio: float | None = None) -> Outcome:
    median, low, high, drawn, ratio_low, ratio_high = map(float, np.random.default_rng(seed).random(6))
    timing = Timing(median, low, high, seed, ratio or drawn, ratio_low, ratio_high)
    return Outcome(timing, None, f"{seed:064x}")


def failed(kind: FailureClass, message: str = "why") -> Outcome:
    return Outcome(None, Failure(kind, message))


def make_record(candidate: str, outcome: Outcome | None = None, **changes: object) -> Record:
    seed = sum(candidate.encode())
    record = Record(
        task_key=TASK.key,
        context_key=CONTEXT,
        candidate_key=candidate,
        origin=Origin.SCRIPT,
        trace=draw_trace(seed),
        script=f'module {{ "{candidate}" }}\n',
        outcome=outcome or timed(seed),
        round=3,
        seed=-(2**63),
    )
    return replace(record, **changes)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store with space.db"


@pytest.fixture
def store(path: Path) -> Iterator[RecordStore]:
    with RecordStore.open(path) as store:
        store.add_task(TASK)
        yield store


# What it keeps


def test_records_come_back_exactly_and_in_insertion_order(store: RecordStore, path: Path) -> None:
    records = [make_record(f"{index:x}") for index in (7, 3, 5, 1)]
    records += [make_record(str(kind), failed(kind, "line 1\nline 2 ü \t")) for kind in FailureClass]
    records += [make_record("plain", origin=Origin.UNTUNED, trace=None, script="")]
    assert store.add(records) == tuple(records)
    assert store.records(TASK.key, CONTEXT) == tuple(records)
    with RecordStore.open(path, read_only=True) as again:
        assert again.records(TASK.key, CONTEXT) == tuple(records)


@pytest.mark.parametrize("seed", range(20))
def test_json_round_trip_keeps_every_bit(seed: int) -> None:
    record = make_record(str(seed), timed(seed))
    assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record


@pytest.mark.parametrize("value", [5e-324, 1.7976931348623157e308, 0.1 + 0.2, 2.0**-40 / 3, -0.0, math.inf])
def test_floats_keep_every_bit_in_store_and_json(store: RecordStore, value: float) -> None:
    record = make_record("x", Outcome(Timing(value, value, value, 1, value, value, value), None))
    store.add([record])
    for back in (store.records(TASK.key, CONTEXT)[0], Record.from_json(json.loads(json.dumps(record.to_json())))):
        assert back.outcome.timing is not None
        assert back.outcome.timing.median_s.hex() == value.hex()
        assert back == record


def test_numpy_scalars_are_stored_as_plain_numbers(store: RecordStore) -> None:
    timing = Timing(np.float64(0.5), 0.25, 1.0, np.int64(3), 2.0, 1.0, 3.0)  # type: ignore[arg-type]
    store.add([make_record("x", Outcome(timing, None), round=np.int64(4), seed=np.int32(5))])
    (record,) = store.records(TASK.key, CONTEXT)
    assert (record.round, record.seed, record.outcome.timing) == (4, 5, Timing(0.5, 0.25, 1.0, 3, 2.0, 1.0, 3.0))
    assert type(record.round) is int


def test_a_failure_text_that_no_database_takes_is_kept_with_escapes(store: RecordStore) -> None:
    store.add([make_record("x", failed(FailureClass.COMPILE_CRASH, "a\0b\udcffc"))])
    failure = store.records(TASK.key, CONTEXT)[0].outcome.failure
    assert failure == Failure(FailureClass.COMPILE_CRASH, "a\\x00b\\udcffc")


def test_json_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="not a record"):
        Record.from_json({"task_key": "t"})


def test_a_candidate_is_stored_once_per_task_and_context(store: RecordStore) -> None:
    first, second = make_record("a", timed(1)), make_record("a", timed(2))
    elsewhere = replace(second, context_key=context_key(threads=2))
    assert store.add([first, second]) == (first,)
    assert store.add([second, elsewhere]) == (elsewhere,)
    assert store.records(TASK.key, CONTEXT) == (first,)
    assert store.find(TASK.key, CONTEXT, "a") == first
    assert store.find(TASK.key, CONTEXT, "b") is None


def test_what_answers_for_a_candidate_is_lasting_or_new_and_stays_the_same(store: RecordStore) -> None:
    passing, other = failed(FailureClass.RUN_TIMEOUT), failed(FailureClass.COMPILE_CRASH)
    first = store.settle(make_record("a", passing))
    assert store.settle(make_record("a", timed(1))) == first
    since = store.last_record()
    assert store.find(TASK.key, CONTEXT, "a", since=since) is None
    second = store.settle(make_record("a", other), since=since)
    third = store.settle(make_record("a", timed(2)), since=store.last_record())
    assert [(r.attempt, r.outcome) for r in (first, second, third)] == [(0, passing), (1, other), (2, timed(2))]
    assert store.settle(make_record("a", timed(3)), since=store.last_record()) == third
    assert [store.find(TASK.key, CONTEXT, "a", since=n) for n in (0, since, since + 1)] == [first, second, third]
    assert store.records(TASK.key, CONTEXT) == (first, second, third)
    assert store.records(TASK.key, CONTEXT, until=since) == (first,)
    with pytest.raises(ValueError, match="has no task 'unknown'"):
        store.settle(make_record("a", task_key="unknown"))


def test_of_processes_that_settle_one_candidate_at_once_all_get_one_record(path: Path) -> None:
    with RecordStore.open(path) as store:
        store.add_task(TASK)

    def settle(number: int) -> Record:
        with RecordStore.open(path) as own:
            return own.settle(make_record("a", timed(number)))

    with ThreadPoolExecutor(8) as threads:
        settled = list(threads.map(settle, range(8)))
    with RecordStore.open(path) as store:
        assert [*{record.outcome.binary_hash for record in settled}] == [
            record.outcome.binary_hash for record in store.records(TASK.key, CONTEXT)
        ]


def test_many_records_of_one_call_are_compared_with_all_that_are_stored(store: RecordStore) -> None:
    records = [make_record(f"{index:05}", failed(FailureClass.NOT_APPLIED)) for index in range(1300)]
    assert store.add(records[::2]) == tuple(records[::2])
    assert store.add(records) == tuple(records[1::2])


def test_add_is_all_or_nothing(store: RecordStore) -> None:
    with pytest.raises(ValueError, match="has no task 'unknown'"):
        store.add([make_record("a"), make_record("b", task_key="unknown")])
    with pytest.raises(AttributeError):
        store.add([make_record("a"), make_record("b", outcome=None, trace="nonsense")])
    assert store.records(TASK.key, CONTEXT) == ()
    assert store.add([]) == ()


def test_best_is_the_first_of_the_fastest_valid_records_of_scripts(store: RecordStore) -> None:
    store.add([make_record("untuned", timed(6, ratio=99.0), origin=Origin.UNTUNED, trace=None, script="")])
    assert store.best(TASK.key, CONTEXT) is None
    records = [
        make_record("slow", timed(1, ratio=0.5)),
        make_record("wrong", failed(FailureClass.WRONG_RESULT)),
        make_record("unknown", timed(5, ratio=math.nan)),
        make_record("fast", timed(2, ratio=3.5)),
        make_record("equal", timed(3, ratio=3.5)),
        make_record("other", timed(4, ratio=9.0), context_key="other"),
    ]
    store.add(records)
    assert store.best(TASK.key, CONTEXT) == records[3]


def test_tasks_keep_their_first_description(store: RecordStore) -> None:
    other = replace(TASK, key="other", flags=())
    store.add_task(other)
    store.add_task(replace(TASK, name="renamed"))
    assert store.tasks() == (TASK, other)


def test_context_key_does_not_depend_on_the_order_of_its_parts() -> None:
    assert context_key(threads=2, cpu="x") == context_key(cpu="x", threads=2) == "cpu=x, threads=2"


def test_runs_keep_settings_and_the_last_state_of_every_round(store: RecordStore) -> None:
    settings = {"seed": 2**70, "trials": 64, "share": 0.1, "nested": {"model": "ü"}}
    assert store.add_run("run", settings)
    assert not store.add_run("run", {"seed": 1})
    assert store.runs() == ("run",)
    assert store.run_settings("run") == settings
    assert store.run_settings("none") is None
    for index, state in ((1, "b"), (0, "a"), (1, "c")):
        store.save_round("run", index, {"state": state})
    assert store.rounds("run") == ({"state": "a"}, {"state": "c"})
    with pytest.raises(ValueError, match="no run 'none'"):
        store.save_round("none", 0, {})


def test_what_was_decided_first_holds(store: RecordStore, path: Path) -> None:
    assert store.decided("variants") is None
    with RecordStore.open(path) as other:
        decisions = [store.decide("variants", lambda: ["a", "b"]), other.decide("variants", lambda: ["b"])]
    assert decisions == [["a", "b"]] * 2
    assert store.decided("variants") == ["a", "b"]
    assert store.decide("share", lambda: 0.1 + 0.2) == store.decided("share") == 0.1 + 0.2
    assert store.decide("none of them", list) == store.decided("none of them") == []
    assert store.decide("zero", lambda: 0) == store.decide("zero", lambda: 1) == 0


def test_a_decision_that_could_not_be_made_is_made_by_the_next(store: RecordStore) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.decide("key", interrupted)
    assert store.decide("key", lambda: 2) == 2


def test_of_processes_that_decide_at_once_all_get_one_decision(path: Path) -> None:
    RecordStore.open(path).close()

    def decide(number: int) -> int:
        with RecordStore.open(path) as own:
            return own.decide("key", lambda: number)

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(decide, range(8)))) == 1


def test_a_clock_shows_what_was_saved_last(store: RecordStore) -> None:
    assert store.seconds("clock") == 0.0
    for seconds in (0.1 + 0.2, 2.5):
        store.save_seconds("clock", seconds)
        assert store.seconds("clock") == seconds


def test_models_are_replaced_by_key(store: RecordStore) -> None:
    assert store.load_model("m") is None
    store.save_model("m", b"\0old")
    store.save_model("m", b"\0new\xff")
    assert store.load_model("m") == b"\0new\xff"


def test_a_store_in_memory_works_like_a_file() -> None:
    with RecordStore.open("sqlite://") as store:
        store.add_task(TASK)
        store.add([make_record("a")])
        assert store.best(TASK.key, CONTEXT) is not None


def test_a_url_and_a_path_name_the_same_file(path: Path) -> None:
    with RecordStore.open(str(path)) as store:
        store.add_task(TASK)
    with RecordStore.open(f"sqlite:///{path}") as store:
        assert store.tasks() == (TASK,)
        assert store.name == str(path)


# What it refuses, and leaves as it was


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


def test_a_newer_schema_is_refused_naming_both_versions(path: Path) -> None:
    fill_store(path, 1)
    set_version(path, SCHEMA_VERSION + 41)
    content = path.read_bytes()
    with pytest.raises(UserError, match=rf"version {SCHEMA_VERSION + 41}, .* up to version {SCHEMA_VERSION}:"):
        RecordStore.open(path)
    assert path.read_bytes() == content


def test_an_older_schema_without_a_migration_is_refused(path: Path) -> None:
    fill_store(path, 1)
    set_version(path, 0)
    with pytest.raises(UserError, match=r"schema version 0, which this mlir-sched .* can no longer read"):
        RecordStore.open(path)


def test_an_older_schema_is_migrated_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_store(path, 2)
    set_version(path, SCHEMA_VERSION - 1)
    with pytest.raises(UserError, match="a tuning run with this store brings it up to date"):
        RecordStore.open(path, read_only=True)
    rename = "UPDATE tasks SET name = name || '!'"
    step = SCHEMA_VERSION - 1
    monkeypatch.setitem(database_schema.MIGRATIONS, step, lambda connection: connection.exec_driver_sql(rename))
    for _ in range(2):
        with RecordStore.open(path) as store:
            assert [task.name for task in store.tasks()] == [TASK.name + "!"]
            assert len(store.records(TASK.key, CONTEXT)) == 2


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_a_store_of_every_schema_version_gets_the_tables_of_this_one(path: Path, version: int) -> None:
    restore(path, version)
    RecordStore.open(path).close()
    RecordStore.open(path.with_name("new.db")).close()
    assert tables_of(path) == tables_of(path.with_name("new.db"))


def test_a_store_of_schema_version_1_can_be_read(path: Path) -> None:
    restore(path, 1)
    with RecordStore.open(path) as store:
        (task,) = store.tasks()
        untuned, script, failure = store.records(task.key, "threads=1")
        assert store.best(task.key, "threads=1") == script
        assert (untuned.origin, untuned.trace, untuned.attempt) == (Origin.UNTUNED, None, 0)
        assert script.trace is not None
        assert script.trace.values == {"tile": (32, 8), "order": ("j", "i")}
        assert [record.round for record in (untuned, script, failure)] == [0, 0, 1]
        assert script.outcome.timing == Timing(1 / 3000, 1 / 3001, 1 / 2999, 24, 4 / 3, 1.25, 1.5, 2)
        assert failure.outcome.failure == Failure(FailureClass.COMPILE_ERROR, "error: it's\nbroken")
        assert store.run_settings("run") == {"seed": 7}
        assert store.rounds("run") == ({"chosen": ["c1", "c2"]},)
        assert store.load_model("model") == b"\x00\x01"
        assert store.find(task.key, "threads=1", "c1") == script
        assert store.add([replace(script, candidate_key="new")])
        assert store.last_record() == 4


def test_a_store_of_schema_version_2_can_be_read(path: Path) -> None:
    restore(path, 2)
    with RecordStore.open(path) as store:
        (task,) = store.tasks()
        (context,) = store.contexts(task.key)
        assert context == "caches=32K/1024K/32768K, cpu=A/25/17, generation=0, runtime=3.13.0, threads=1, tool=0.1.0"
        untuned, stopped, script = store.records(task.key, context)
        assert (untuned.origin, untuned.trace, untuned.candidate_key) == (Origin.UNTUNED, None, "untuned")
        assert stopped.outcome.failure == Failure(FailureClass.RUN_TIMEOUT, "no result after 3 s")
        assert (stopped.candidate_key, script.candidate_key) == (script_key(script.script),) * 2
        assert (stopped.attempt, script.attempt) == (0, 1)
        assert store.run_settings("run-0123456789abcdef") == {"last_record": 2}


def test_decisions_and_clocks_of_schema_version_2_are_found_after_the_migration(path: Path) -> None:
    restore(path, 2)
    run, clock = "variants-0011223344556677", "variants-8899aabbccddeeff"
    settings = {
        "fresh-0": {},
        "compiled-89abcdef01234567": {"names": ["O3"]},
        clock: {},
        f"{run}-begun": {"seconds": 12.5},
        f"{run}-contenders": {"names": ["default", "O3"]},
        f"{run}-search-0": {"trials": 8},
        f"{run}-rung-1": {"names": ["O3"]},
        f"{run}-chosen-O3 on local-sync": {"names": ["O3 on local-sync"]},
        "a run of mine": {"names": 1},
    }
    with sqlite3.connect(path) as connection:
        rows = [(key, json.dumps(data), f"time {place}") for place, (key, data) in enumerate(settings.items())]
        connection.executemany("INSERT INTO runs (key, settings, created) VALUES (?, ?, ?)", rows)
        connection.execute("INSERT INTO rounds VALUES (?, 0, ?)", (clock, '{"seconds": 61.25}'))
    with RecordStore.open(path) as store:
        assert store.runs() == ("run-0123456789abcdef", "a run of mine")
        assert store.rounds("run-0123456789abcdef") == ({"seconds": 1.5, "trials": 1},)
        assert store.seconds(clock) == 61.25
        assert store.decided("fresh-0") is not None
        assert store.decided("compiled-89abcdef01234567") == store.decided(f"{run}-rung-1") == ["O3"]
        assert store.decided(f"{run}-tuned") == ["default", "O3"]
        assert (store.decided(f"{run}-begun"), store.decided(f"{run}-search-0")) == (12.5, 8)
        assert store.decided(f"{run}-chosen-O3 on local-sync") == ["O3 on local-sync"]


def test_a_store_of_schema_version_3_can_be_read(path: Path) -> None:
    restore(path, 3)
    with RecordStore.open(path) as store:
        (task,) = store.tasks()
        (context,) = store.contexts(task.key)
        best = store.best(task.key, context)
        assert best is not None
        assert (best.attempt, best.candidate_key) == (1, script_key(best.script))
        assert store.runs() == ("run-0123456789abcdef",)
        assert store.decided("variants-0011223344556677-tuned") == ["default", "O3"]
        assert store.decide("variants-0011223344556677-begun", lambda: 0.0) == 12.5
        assert store.seconds("variants-8899aabbccddeeff") == 61.25
        assert store.load_model("run-0123456789abcdef") == b"\0\1"


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


# Other processes


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


def test_processes_that_make_and_write_one_store_at_once_lose_nothing(path: Path) -> None:
    writers = [start_writer(path, tag, 20) for tag in "abc"]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert stored_rounds(path) == {(tag, round_): 16 for tag in "abc" for round_ in range(20)}


def test_a_reader_sees_whole_rounds_while_a_writer_works(path: Path) -> None:
    writer = start_writer(path, "a", 100)
    assert writer.stdout is not None
    for _ in range(3):
        writer.stdout.readline()
    seen: list[int] = []
    with RecordStore.open(path, read_only=True, timeout_s=1) as store:
        while writer.poll() is None:
            seen.append(len(store.records("task", "threads=1")))
        seen.append(len(store.records("task", "threads=1")))
    assert len(set(seen)) > 3
    assert seen == sorted(seen)
    assert all(count % 16 == 0 for count in seen)
    assert seen[-1] == 1600


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
        with store._engine.connect() as connection:
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


def fill_store(path: Path, count: int) -> None:
    with RecordStore.open(path) as store:
        store.add_task(TASK)
        store.add([make_record(f"{index:x}", script="x" * 2000) for index in range(count)])


def restore(path: Path, version: int) -> None:
    """Make the store that a schema version wrote."""
    with sqlite3.connect(path) as connection:
        connection.executescript((DATA / f"store_v{version}.sql").read_text())


def tables_of(path: Path) -> dict[str, str]:
    """Return what makes every table and index, without the way it is laid out."""
    with sqlite3.connect(path) as connection:
        made = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    return {name: " ".join(sql.replace('"', "").split()) for name, sql in made.items()}


def set_version(path: Path, version: int) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE mlir_sched_schema SET version = ?", (version,))
    connection.close()


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
