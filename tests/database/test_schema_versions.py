"""Stores of other schema versions: migrated once, or refused."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from folders import DATA
from stored_records import CONTEXT, TASK, fill_store

from mlir_sched.database import RecordStore
from mlir_sched.database import schema as database_schema
from mlir_sched.database.record import Origin, StoredProgram, script_key
from mlir_sched.database.schema import SCHEMA_VERSION
from mlir_sched.errors import Failure, FailureClass, UserError
from mlir_sched.outcome import Timing, Verdict


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


def test_a_store_of_schema_version_4_gets_programs(path: Path) -> None:
    restore(path, 4)
    program = StoredProgram("threads=1", ("task",), {"variant": "O3"}, 1.5)
    with RecordStore.open(path) as store:
        assert store.programs("threads=1") == ()
        store.keep_program(program)
        assert store.programs("threads=1") == (program,)


def test_a_store_of_schema_version_5_can_be_read(path: Path) -> None:
    restore(path, 5)
    with RecordStore.open(path) as store:
        decisions = {"variant": "channels_last", "algorithm 7x7x8x8": "winograd"}
        assert store.programs("threads=1") == (StoredProgram("threads=1", ("task",), decisions, 2.5),)


@pytest.mark.parametrize(
    ("timing", "failure", "verdict"),
    [
        (Timing(1e-3, 1e-3, 1e-3, 24, 1.3, 1.2, 1.4), None, Verdict.RIGHT),
        (Timing(1e-3, 1e-3, 1e-3, 2, 0.26, 0.2, 0.3), None, Verdict.RIGHT),
        (Timing(1e-3, 1e-3, 1e-3, 1, 3.0, 3.0, 3.0), None, Verdict.NOT_CHECKED),
        (Timing(1e-3, 1e-3, 1e-3, 24, 0.25, 0.2, 0.3), None, Verdict.NOT_CHECKED),
        (Timing(1e-3, 1e-3, 1e-3, 0, 2.0, 2.0, 2.0), None, Verdict.NOT_CHECKED),
        (None, FailureClass.WRONG_RESULT, Verdict.WRONG),
        (None, FailureClass.RUN_TIMEOUT, Verdict.NOT_CHECKED),
    ],
)
def test_a_time_of_schema_version_5_is_right_only_where_no_check_can_have_been_skipped(
    path: Path, timing: Timing | None, failure: FailureClass | None, verdict: Verdict
) -> None:
    restore(path, 5)
    row = {
        "task_key": "task", "context_key": "threads=2", "candidate_key": "one", "attempt": 0, "origin": "script",
        "median_s": timing and timing.median_s, "ratio": timing and timing.ratio,
        "timing": timing and json.dumps(timing.to_json()), "failure": failure, "failure_message": failure and "why",
        "binary_hash": "", "round": 0, "seed": 0, "tool": "", "created": "", "trace": None, "script": "text",
    }  # fmt: skip
    with sqlite3.connect(path) as connection:
        names = ", ".join(row), ", ".join(f":{name}" for name in row)
        connection.execute(f"INSERT INTO records ({names[0]}) VALUES ({names[1]})", row)
        last = connection.execute("SELECT max(id) FROM records").fetchone()[0]
    with RecordStore.open(path) as store:
        (record,) = store.records("task", "threads=2")
        assert (record.outcome.timing, record.outcome.verdict) == (timing, verdict)
        assert store.last_record() == last
        assert (store.best("task", "threads=2") is None) == (verdict is not Verdict.RIGHT and not estimated(timing))


def estimated(timing: Timing | None) -> bool:
    return timing is not None and timing.is_estimated


def test_a_store_of_schema_version_6_can_be_read(path: Path) -> None:
    restore(path, 6)
    with RecordStore.open(path) as store:
        untuned, right, slow, wrong = store.records("task", "threads=1")
        assert untuned.origin is Origin.UNTUNED
        verdicts = [record.outcome.verdict for record in (untuned, right, slow, wrong)]
        assert verdicts == [Verdict.RIGHT, Verdict.RIGHT, Verdict.NOT_CHECKED, Verdict.WRONG]
        assert (right.outcome.valid, slow.outcome.valid) == (right.outcome.timing, None)
        assert store.best("task", "threads=1") == right


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
