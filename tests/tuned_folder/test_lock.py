"""One run at a time writes into an output folder."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mlir_sched.cli import main
from mlir_sched.errors import UserError
from mlir_sched.tuned_folder.lock import hold_folder
from mlir_sched.tuned_folder.names import LOCK

HOLDER = """
import sys, time
from pathlib import Path
from mlir_sched.tuned_folder.lock import hold_folder
with hold_folder(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def hold(folder: Path) -> subprocess.Popen[str]:
    """Start a process that holds a folder, and return it once it does."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.promise
def test_a_second_run_is_refused_with_folder_and_process_until_the_first_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "tuned"
    first = hold(folder)
    with pytest.raises(UserError, match=rf"{folder}: another run \(process {first.pid}\) .*choose another folder"):
        hold_folder(folder).__enter__()
    first.kill()
    first.communicate()
    assert (folder / LOCK).read_text() == str(first.pid), "a killed process leaves its file behind"
    with hold_folder(folder):
        assert (folder / LOCK).read_text() == str(os.getpid())
    assert list(folder.iterdir()) == []


def test_the_command_refuses_a_folder_that_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.mlir").write_text("func.func @main() { return }")
    with hold_folder(tmp_path / "tuned"):
        assert main(["tune", "model.mlir"]) == 2
    captured = capsys.readouterr()
    assert f"another run (process {os.getpid()})" in captured.err
    assert len(captured.err.splitlines()) == 1


def test_runs_that_take_turns_in_a_folder_never_meet(tmp_path: Path) -> None:
    inside, met, turns = threading.Semaphore(1), [], []
    deadline = time.monotonic() + 2

    def run(number: int) -> None:
        mine = 0
        while mine < 20 and time.monotonic() < deadline:
            try:
                with hold_folder(tmp_path):
                    met.append(not inside.acquire(blocking=False))
                    mine += 1
                    inside.release()
            except UserError:
                time.sleep(0)
        turns.append((number, mine))

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(run, range(6)))
    assert not any(met)
    assert sum(mine for _, mine in turns) >= 20
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["file/tuned", "file"])
def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write the output folder"):
        hold_folder(tmp_path / name).__enter__()


def test_a_file_that_is_no_lock_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("of another program")
    with pytest.raises(UserError, match=f"{LOCK} is not the lock of a run"):
        hold_folder(tmp_path).__enter__()
    assert (tmp_path / LOCK).read_text() == "of another program"
