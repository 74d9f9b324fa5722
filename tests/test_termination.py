"""SIGTERM ends a run as Ctrl-C does, whatever it is doing, and leaves neither processes nor temporary folders."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

MODEL = """
func.func @main(%x: tensor<64x128xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %y = linalg.reduce { arith.addf } ins(%x : tensor<64x128xf32>) outs(%filled : tensor<64xf32>) dimensions = [1]
  return %y : tensor<64xf32>
}
"""
TRIALS = 8
"""One round."""
LONG_RUN = ("tune", "model.mlir", "--minutes", "10")
DONE_SEARCH = ("tune", "model.mlir", "--trials", str(TRIALS))
"""In a folder where so many candidates are known."""


@dataclass
class Run:
    """A command under way, with a folder for temporary files of its own.

    Attributes:
        process: The command.
        temporary: Its folder for temporary files.
        seen: All processes that were ever found below it.
    """

    process: subprocess.Popen[str]
    temporary: Path
    seen: set[psutil.Process]

    def wait_for(self, moment: Callable[[Run], bool]) -> None:
        """Wait until it does something."""
        deadline = time.monotonic() + 120
        while not moment(self):
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.002)

    def children(self) -> list[str]:
        """Return the command lines of the processes below it."""
        lines = []
        with suppress(psutil.Error):
            for child in psutil.Process(self.process.pid).children(recursive=True):
                self.seen.add(child)
                lines.append(" ".join(child.cmdline()))
        return lines

    def runs(self, program: str) -> bool:
        """Say whether there is a process of a program below it."""
        return any(program in line and "launch_program" not in line for line in self.children())

    def says(self, text: str) -> bool:
        """Say whether it has written a text to its standard error."""
        return text in (self.temporary.parent / "stderr").read_text()

    def assert_nothing_is_left(self) -> None:
        """Require that its processes end and that its temporary files are gone."""
        self.assert_no_process_is_left()
        assert list(self.temporary.iterdir()) == []

    def assert_no_process_is_left(self) -> None:
        """Require that its processes end."""
        _, alive = psutil.wait_procs(self.seen, timeout=10)
        assert [p for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE] == []


def start(folder: Path, *arguments: str) -> Run:
    (folder / "temporary").mkdir(exist_ok=True)
    with (folder / "stderr").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "mlir_sched.cli", *arguments],
            cwd=folder,
            env=os.environ | {"TMPDIR": str(folder / "temporary")},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    return Run(process, folder / "temporary", set())


def terminated(run: Run, patience_s: float = 60) -> str:
    """Terminate a run, require that nothing of it is left, and return what it printed."""
    run.children()
    run.process.terminate()
    out, _ = run.process.communicate(timeout=patience_s)
    assert run.process.returncode == 130
    assert not run.says("Traceback")
    run.assert_nothing_is_left()
    return out


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder in which a run was terminated after its first round, and what it printed."""
    folder = tmp_path_factory.mktemp("searched")
    (folder / "model.mlir").write_text(MODEL)
    run = start(folder, *LONG_RUN)
    run.wait_for(lambda run: run.says(f"; {TRIALS} trials, ") and run.runs("worker_main"))
    return folder, terminated(run)


def test_a_run_terminated_during_the_search_emits_the_best_so_far(searched: tuple[Path, str]) -> None:
    folder, printed = searched
    assert "interrupted; best so far" in printed
    summary = json.loads((folder / "tuned" / "summary.json").read_text())
    assert summary["interrupted"]
    assert summary["trials"] >= TRIALS


MOMENTS: dict[str, Callable[[Run], bool]] = {
    "extraction": lambda run: run.says("compiling and timing") and run.runs("worker_main"),
    "iree-compile": lambda run: run.runs("iree-compile"),
    "timing": lambda run: run.runs("runner.process"),
    "emission": lambda run: run.says("emitting and measuring") and run.runs("iree-compile"),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_terminated_run_leaves_nothing(searched: tuple[Path, str], tmp_path: Path, moment: str) -> None:
    folder = Path(shutil.copytree(searched[0], tmp_path / "copy"))
    run = start(folder, *DONE_SEARCH)
    run.wait_for(MOMENTS[moment])
    terminated(run, patience_s=10)
    assert run.says("interrupted; what was measured is in the record store")


def test_a_replay_terminated_again_and_again_leaves_nothing(searched: tuple[Path, str]) -> None:
    run = start(searched[0], "replay", "tuned", "model.mlir")
    run.wait_for(lambda run: run.runs("runner.process"))
    run.children()
    run.process.terminate()
    time.sleep(0.1)
    run.process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    terminated(run, patience_s=10)


def test_nothing_stays_of_a_killed_run_when_the_next_one_is_terminated_with_all_its_processes(
    searched: tuple[Path, str], tmp_path: Path
) -> None:
    """A service manager tells every process of a service to end."""
    folder = Path(shutil.copytree(searched[0], tmp_path / "copy"))
    killed = start(folder, *LONG_RUN)
    killed.wait_for(MOMENTS["iree-compile"])
    killed.children()
    killed.process.kill()
    killed.process.communicate()
    killed.assert_no_process_is_left()
    assert list(killed.temporary.iterdir())
    following = start(folder, *LONG_RUN)
    following.wait_for(MOMENTS["iree-compile"])
    following.children()
    for process in following.seen:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGTERM)
    time.sleep(0.1)
    assert following.process.poll() is None
    terminated(following, patience_s=10)
