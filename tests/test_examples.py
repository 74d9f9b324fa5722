"""The examples run from start to end and print what they promise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from folders import ROOT, SUPPORT

from mlir_sched.emission.acceptance import NO_LOSS
from mlir_sched.program.variants.tunability import can_tune
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks import extract
from mlir_sched.tuning.budget import PICKS

pytestmark = pytest.mark.promise

EXAMPLES = ROOT / "examples"
TIERS = {"small_matmul.mlir": pytest.mark.promise, "three_ops.mlir": pytest.mark.landing}
"""Where a run on a program belongs: one operator, several families; the others tell no more than these."""
PROGRAMS = [
    pytest.param(name, marks=TIERS.get(name, pytest.mark.nightly), id=name)
    for name in sorted(str(p.relative_to(EXAMPLES)) for p in EXAMPLES.rglob("*.mlir") if p.parent.name != "tuned")
]


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


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_is_tuned_without_a_search(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(SUPPORT / "short_sessions.py"), "tune", str(EXAMPLES / name), "--threads", "1"]
    done = subprocess.run(
        [*command, "--trials", "0", "-o", "tuned"], capture_output=True, text=True, cwd=tmp_path, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert "no search: " in done.stdout
    summary = json.loads((tmp_path / "tuned" / "summary.json").read_text())
    chosen = summary["one_shot"]
    assert 0 < summary["trials"] == sum(chosen["candidates"].values()) <= PICKS * chosen["dispatches"]
    assert set(chosen["candidates"]) <= {"templates", "cost model"}
    assert chosen["words"] in (tmp_path / "tuned" / "report.html").read_text()
    assert summary["program"]["verdict"] == "right"
    scripts = [each for each in summary["dispatches"] if each["tuned"]]
    assert not scripts or summary["program"]["tuned"]["ratio_low"] >= NO_LOSS
