"""What the benchmark of the machine's faults calls a problem."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.fuzz import faults
from benchmarks.fuzz.faults import FAULTS, ended, stored_problems


def begun(folder: Path, program: str) -> subprocess.Popen[bytes]:
    """Start a program of Python, whose output is the log of a run."""
    with (folder / "log").open("wb") as file:
        return subprocess.Popen([sys.executable, "-c", program], stdout=file, stderr=file)


@pytest.mark.promise
@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("print('error: the disk is full')\nexit(1)", ""),
        ("print('written')", "ended with 0: written"),
        ("1 / 0", "a traceback or an internal error: ZeroDivisionError: division by zero"),
        ("import os\nos.abort()", "ended with -6: nothing"),
    ],
)
def test_a_run_has_to_end_as_its_fault_allows(program: str, problem: str, tmp_path: Path) -> None:
    assert ended(begun(tmp_path, program), tmp_path, "log", (1,)) == ([problem] if problem else [])


@pytest.mark.promise
def test_a_run_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "LIMIT_S", 0.2)
    process = begun(tmp_path, "import time\ntime.sleep(60)")
    assert ended(process, tmp_path, "log", (0,)) == ["no end after 0 s"]
    assert process.wait(10) != 0


def test_candidates_that_are_blamed_or_stored_twice_are_problems(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "records.sqlite")) as database, database:
        database.execute("CREATE TABLE records (task_key, context_key, candidate_key, origin, failure)")
        stored = [("a", None), ("a", None), ("b", "run_timeout"), ("c", "illegal_trace")]
        database.executemany("INSERT INTO records VALUES ('t', 'c', ?, 'script', ?)", stored)
    assert stored_problems(tmp_path) == ["1 candidates were stored twice", "1 candidates are stored as run_timeout"]


def test_faults_have_names_of_their_own() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
