"""A run that is killed at any moment goes on where it stopped, and ends with the records of an uninterrupted one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from folders import SUPPORT
from replayed_run import TARGET

from mlir_sched.database import RecordStore
from mlir_sched.database.record import Record, measuring_context
from mlir_sched.models import XGBoostModel
from mlir_sched.tuning.budget import PICKS

pytestmark = pytest.mark.promise

SCRIPT = SUPPORT / "replayed_run.py"
TRIALS = 40
Key = tuple[str, str, str, int]


def start(store: Path, log: Path, trials: int = TRIALS, begin_from: str | Path = "off") -> subprocess.Popen[str]:
    arguments = (SCRIPT, store, log, trials, begin_from)
    return subprocess.Popen([sys.executable, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


def records_of(path: Path) -> dict[Key, tuple[object, ...]]:
    with RecordStore.open(path) as store:
        found = [r for task in store.tasks() for r in store.records(task.key, measuring_context(TARGET))]
    return {record.key: essence(record) for record in found}


def essence(record: Record) -> tuple[object, ...]:
    return record.trace, record.script, record.outcome, record.round, record.seed


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[Key, tuple[object, ...]]:
    folder = tmp_path_factory.mktemp("uninterrupted")
    process = start(folder / "records.sqlite", folder / "log")
    assert process.communicate()[0].strip() == f"{TRIALS} tried, {TRIALS} measured"
    records = records_of(folder / "records.sqlite")
    assert len(records) == TRIALS + 2  # and the untuned code of both tasks
    return records


@pytest.mark.parametrize(
    "most", [pytest.param(2, marks=pytest.mark.landing), pytest.param(10, marks=pytest.mark.nightly)]
)
def test_a_run_killed_at_random_moments_ends_with_the_same_records(
    uninterrupted: dict[Key, tuple[object, ...]], tmp_path: Path, most: int
) -> None:
    store, log = tmp_path / "records.sqlite", tmp_path / "log"
    log.touch()
    rng = random.Random(0)
    kills = 0
    kept: dict[Key, tuple[object, ...]] = {}
    while kills < most:
        process = start(store, log)
        seen = log.stat().st_size
        deadline = time.monotonic() + 60
        while log.stat().st_size == seen and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(rng.uniform(0.0, 0.03))
        if process.poll() is not None:
            break  # it ended before it could be killed
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        kills += 1
        now = records_of(store)
        assert all(now.get(key) == value for key, value in kept.items()), "a record was lost or changed"
        kept = now
    assert kills >= most / 2
    process = start(store, log)
    assert process.communicate()[0].startswith(f"{TRIALS} tried, ")
    assert records_of(store) == uninterrupted
    assert_none_measured_twice_after_recording(log, uninterrupted)


def assert_none_measured_twice_after_recording(log: Path, uninterrupted: dict[Key, tuple[object, ...]]) -> None:
    """Each process may lose at most the one candidate whose record was under way when it was killed."""
    lines = [line.split() for line in log.read_text().splitlines()]
    processes = {pid for pid, _ in lines}
    measured = [digest for _, digest in lines]
    assert len(measured) - len(set(measured)) <= len(processes) - 1
    assert len(set(measured)) == TRIALS


def test_a_finished_run_measures_nothing_when_repeated(tmp_path: Path) -> None:
    store, log = tmp_path / "records.sqlite", tmp_path / "log"
    start(store, log).communicate()
    again = start(store, log).communicate()[0]
    assert again.strip() == f"{TRIALS} tried, 0 measured"


@pytest.mark.landing
def test_the_cost_model_is_stored_with_its_search(tmp_path: Path) -> None:
    store, log = tmp_path / "records.sqlite", tmp_path / "log"
    start(store, log).communicate()
    with RecordStore.open(store) as opened:
        (search,) = opened.searches()
        stored = opened.load_cost_model(search)
    assert stored is not None
    path = tmp_path / "model"
    path.write_bytes(stored)
    model = XGBoostModel()
    model.load(path)
    assert model.fitted


@pytest.mark.landing
def test_a_larger_budget_goes_on_where_the_smaller_one_ended(
    uninterrupted: dict[Key, tuple[object, ...]], tmp_path: Path
) -> None:
    store, log = tmp_path / "records.sqlite", tmp_path / "log"
    start(store, log, trials=TRIALS // 2).communicate()
    end = start(store, log).communicate()[0]
    assert end.strip() == f"{TRIALS} tried, {TRIALS // 2} measured"
    assert records_of(store) == uninterrupted


@pytest.mark.landing
@pytest.mark.parametrize(("trials", "tried"), [(TRIALS, TRIALS), (0, 2 * PICKS)])
def test_a_killed_run_goes_on_with_the_sources_and_templates_that_it_began_with(
    uninterrupted: dict[Key, tuple[object, ...]], tmp_path: Path, trials: int, tried: int
) -> None:
    given, log = tmp_path / "given.sqlite", tmp_path / "log"
    start(given, tmp_path / "given.log").communicate()
    start(tmp_path / "whole.sqlite", tmp_path / "whole.log", trials, given).communicate()
    whole = records_of(tmp_path / "whole.sqlite")
    assert whole.keys() != uninterrupted.keys(), "it tries others than a run that begins from nothing"
    log.touch()
    process = start(tmp_path / "records.sqlite", log, trials, given)
    while not log.stat().st_size and process.poll() is None:
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert len(records_of(tmp_path / "records.sqlite")) < len(whole)
    given.write_text("what the sources came from is gone")
    again = start(tmp_path / "records.sqlite", log, trials, given).communicate()[0]
    assert again.startswith(f"{tried} tried, ")
    assert records_of(tmp_path / "records.sqlite") == whole
