"""What the benchmark of kills finds: processes that are left, rows that are lost, results that are not whole."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from benchmarks.tool import kills
from benchmarks.tool.kills import Kill, kept, kill, problems_of_end, table_of

OUTLIVES = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
print("searching", file=sys.stderr, flush=True)
time.sleep(60)
"""


def store_of(folder: Path, *candidates: str) -> None:
    """Make a store with a record per candidate."""
    with closing(sqlite3.connect(folder / "records.sqlite")) as database, database:
        database.execute(
            "CREATE TABLE records (id INTEGER PRIMARY KEY, task_key TEXT, context_key TEXT, candidate_key TEXT, "
            "attempt INTEGER, timing TEXT, failure TEXT, origin TEXT)"
        )
        database.execute("CREATE TABLE run_decisions (key TEXT, value TEXT)")
        rows = [("task", "context", each, 0, "", "", "script") for each in candidates]
        names = "task_key, context_key, candidate_key, attempt, timing, failure, origin"
        database.executemany(f"INSERT INTO records ({names}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)


@pytest.mark.promise
def test_a_process_that_is_left_and_rows_that_are_lost_are_problems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kills, "PATIENCE_S", 0.2)
    store_of(tmp_path, "a")
    before = kept(tmp_path) | {("lost",)}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-c", OUTLIVES], stderr=log)
        found = kill(process, 1.0, tmp_path, tmp_path / "log", before)
    assert found is not None
    assert (found.said, found.records) == ("searching", 1)
    left, lost = found.problems
    assert "is left" in left
    assert lost == "1 rows of the store were lost or changed"
    psutil.Process(int(left.split()[1])).kill()


@pytest.mark.promise
def test_a_process_that_ended_before_was_not_killed(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    assert kill(process, 30.0, tmp_path, tmp_path / "log", set()) is None


def test_the_end_has_to_be_verified_and_stored_once(tmp_path: Path) -> None:
    store_of(tmp_path, "a", "b", "b")
    unverified = json.dumps({"program": {"verdict": "not_checked"}}).encode()
    expected = ["the numbers of the result are not checked", "1 candidates were stored twice"]
    assert problems_of_end(0, unverified, tmp_path) == expected
    assert problems_of_end(2, b"", tmp_path) == ["the last process ended with 2"]
    (tmp_path / "flags.txt").write_text("--iree-opt-level=O3\n")
    verified = json.dumps({"program": {"verdict": "right"}}).encode()
    assert "no summary of the same emission" in problems_of_end(0, verified, tmp_path)[0]


def test_the_table_has_a_row_per_kill() -> None:
    (row,) = [list(column.cells) for column in table_of([Kill(3.0, "search", 7, ())]).columns][-1:]
    assert row == ["none"]
