"""A run on a model of several dispatches and variants that is killed again and again ends as if it had not been."""

from __future__ import annotations

import json
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from folders import ROOT, SUPPORT
from running_command import RunningCommand, start

from mlir_sched.compiler.flags import library_in, read_response_file, without_library
from mlir_sched.processes.temporary import PREFIX
from mlir_sched.tuned_folder.claim import Claim
from mlir_sched.tuned_folder.folder import read_tuned_folder
from mlir_sched.tuned_folder.installation import EmittedFiles, emission_of, install
from mlir_sched.tuned_folder.manifest import Source, model_digest
from mlir_sched.tuned_folder.names import FLAGS

pytestmark = [pytest.mark.landing, pytest.mark.long]

TRIALS = 6
RUNS = {
    "search": ("--trials", str(TRIALS)),
    "transfer": ("--trials", str(TRIALS), "--transfer", "auto", "--templates"),
    "no search": ("--trials", "0"),
}
"""What is asked of a run, beside its model."""
OLDER = EmittedFiles('module attributes {mlir_sched.emission = "aaaaaaaaaaaa"} {\n}\n', ("--older",))
"""The result that the output folder holds when the run begins."""

MOMENTS: dict[str, Callable[[RunningCommand], bool]] = {
    "variants": lambda run: run.says("compiling and timing") and run.runs("iree-compile"),
    "search": lambda run: bool(measured(run.temporary.parent / "log")),
    "finalists": lambda run: run.says("measuring the finalists"),
    "emission": lambda run: run.says("emitting and measuring"),
}
"""When the run is killed, one time after the other, after a random delay of at most :data:`DELAY_S`."""
DELAY_S = 0.5


def measured(log: Path) -> list[str]:
    """Return the candidates, with their tasks, whose outcomes were known, in order; not the untuned code."""
    lines = [line.partition(" ")[2] for line in (log.read_text().splitlines() if log.exists() else [])]
    return [line for line in lines if not line.endswith(" untuned")]


def begin(folder: Path, asked: Sequence[str]) -> RunningCommand:
    """Start or resume the run."""
    program = str(SUPPORT / "noted_tune.py"), str(folder / "log")
    model = str(ROOT / "examples" / "three_ops.mlir")
    return start(folder, "tune", model, *asked, "--threads", "1", "--json", program=program)


def held(folder: Path) -> EmittedFiles:
    """Return what plain ``iree-compile @flags.txt`` would be given at some instant."""
    while True:
        text = (folder / FLAGS).read_text()
        flags = read_response_file(text)
        named = library_in(flags)
        try:
            library = named.read_text() if named else ""
        except FileNotFoundError:
            assert (folder / FLAGS).read_text() != text, f"the flags name {named}, which is missing"
            continue
        if (folder / FLAGS).read_text() == text:
            return EmittedFiles(library, without_library(flags))


@contextmanager
def watched(folder: Path) -> Iterator[list[EmittedFiles]]:
    """Yield the distinct results that the folder holds until the end, as another process sees them, in their order."""
    seen, errors, ended = [held(folder)], list[BaseException](), threading.Event()

    def watch() -> None:
        try:
            while not ended.wait(0.002):
                if (now := held(folder)) != seen[-1]:
                    seen.append(now)
        except BaseException as error:
            errors.append(error)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()
    assert not errors, errors


def rows(store: Path, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query; none while the store is not made."""
    if not store.exists():
        return []
    with closing(sqlite3.connect(store)) as database:
        made = database.execute("SELECT name FROM sqlite_master WHERE name = 'records'").fetchall()
        return database.execute(sql).fetchall() if made else []


def kept(store: Path) -> set[tuple[Any, ...]]:
    """Return all decisions and records of a store."""
    records = rows(store, "SELECT id, task_key, candidate_key, attempt, timing, failure FROM records")
    return {*rows(store, "SELECT key, value FROM run_decisions"), *records}


@pytest.mark.parametrize(
    ("asked", "moments"),
    [
        pytest.param("search", ("emission",), id="search-one"),
        *(pytest.param(asked, tuple(MOMENTS), marks=pytest.mark.nightly, id=f"{asked}-each") for asked in RUNS),
    ],
)
def test_a_run_on_a_model_that_is_killed_at_its_phases_ends_with_what_the_store_has(
    tmp_path: Path, asked: str, moments: tuple[str, ...]
) -> None:
    rng = random.Random(0)
    tuned, log = tmp_path / "tuned", tmp_path / "log"
    tuned.mkdir()
    model = ROOT / "examples" / "three_ops.mlir"
    claim = Claim(Source(model_digest(model, ()), model.name, "llvm-cpu"))
    install(tuned, claim, OLDER, json.dumps({"emission": OLDER.emission}))
    store, stored = tuned / "records.sqlite", set[tuple[Any, ...]]()
    with watched(tuned) as seen:
        for name in moments:
            run = begin(tmp_path, RUNS[asked])
            run.wait_for(MOMENTS[name])
            time.sleep(rng.uniform(0.0, DELAY_S))
            kill(run)
            assert seen == [OLDER]
            assert stored <= kept(store), "a record or a decision was lost or changed"
            stored = kept(store)
        searched = log.read_text()
        run = begin(tmp_path, RUNS[asked])
        result = json.loads(run.process.communicate()[0])
    assert run.process.returncode == 0, result
    run.assert_nothing_is_left()
    assert_ends_as_decided(result, tuned, seen, stored)
    assert log.read_text() == searched, "a candidate was measured after the search had ended"
    assert_none_measured_twice(log, store, kills=2)


def kill(run: RunningCommand) -> None:
    """Kill a run; its processes end, and of its temporary files only the folder is left that the next run removes."""
    run.children()
    run.process.kill()
    run.process.communicate()
    run.assert_no_process_is_left()
    assert [path.name.startswith(PREFIX) for path in run.temporary.iterdir()] == [True]


def assert_ends_as_decided(
    result: dict[str, Any], tuned: Path, seen: list[EmittedFiles], stored: set[tuple[Any, ...]]
) -> None:
    """Require that the last process made no decision anew, and that the folder went from one result to the next."""
    chosen = result["one_shot"]
    assert result["trials"] == (sum(chosen["candidates"].values()) if chosen else TRIALS) > 0
    assert result["evaluated"] == 0
    assert result["program"]["verdict"] == "right"
    assert kept(tuned / "records.sqlite") == stored
    files = read_tuned_folder(tuned)
    assert not files.problem
    assert files.summary["trials"] == result["trials"]
    assert held(tuned) == seen[-1]
    assert set(seen) == {OLDER, seen[-1]}
    assert emission_of(files.library) == files.summary["emission"]
    assert sorted(path.name for path in tuned.iterdir() if path.name.startswith(("library.", ".library."))) == (
        ["library.mlir"] if files.library else []
    )


def assert_none_measured_twice(log: Path, store: Path, *, kills: int) -> None:
    """Require that what is stored was measured once; a kill may cost the one outcome that was not stored yet."""
    found = measured(log)
    assert len(found) - len(set(found)) <= kills
    (row,) = rows(store, "SELECT count(*), sum(attempt) FROM records WHERE origin = 'script'")
    assert row == (len(set(found)), 0)
