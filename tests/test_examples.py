"""The examples run from start to end and print what they promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from folders import ROOT, SUPPORT

from mlir_sched.program.variants.tunability import can_tune
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks import extract

pytestmark = pytest.mark.promise

EXAMPLES = ROOT / "examples"


def run(name: str, trials: int, folder: Path) -> str:
    """Run an example in an empty folder and return what it prints."""
    command = [sys.executable, str(SUPPORT / "short_sessions.py"), str(EXAMPLES / name), "--trials", str(trials)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=240)
    assert done.returncode == 0, done.stderr
    assert not list(folder.iterdir())
    return done.stdout


@pytest.mark.alone
def test_tune_matmul(tmp_path: Path) -> None:
    output = run("tune_matmul.py", 8, tmp_path)
    assert "x of plain iree-compile" in output
    assert "_dispatch_" in output  # which one depends on the compiler flags that won


@pytest.mark.landing
def test_custom_transform_module(tmp_path: Path) -> None:
    output = run("custom_transform_module.py", 16, tmp_path)
    assert "outer_product " in output
    assert "emitted: " in output


@pytest.mark.landing
def test_resume_and_edit(tmp_path: Path) -> None:
    output = run("resume_and_edit.py", 4, tmp_path)
    assert "first run: " in output
    if "no script won" not in output:
        assert "edited script: decisions edited; reduction" in output
        assert "candidates measured anew" in output


def test_every_dispatch_of_three_ops_can_be_tuned(here: Target) -> None:
    tasks = extract(EXAMPLES / "three_ops.mlir", here).tasks
    assert len(tasks) == 3
    assert all(can_tune(task, Space.default(here), here) for task in tasks)


@pytest.mark.parametrize("name", ["tune_matmul.py", "custom_transform_module.py", "resume_and_edit.py"])
def test_example_explains_itself(name: str) -> None:
    done = subprocess.run([sys.executable, str(EXAMPLES / name), "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "--trials" in done.stdout
