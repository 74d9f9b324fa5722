"""Vulkan end to end: tuned on a device, emitted, compiled plainly, replayed, and kept apart from the CPU."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from applied_sequences import applied_sequences
from command_line import run
from contraction_payloads import matmul
from vulkan import require_vulkan

from mlir_sched import RecordStore
from mlir_sched.compiler.iree_compile import iree_compile_path
from mlir_sched.emission.acceptance import NO_LOSS
from mlir_sched.tuning.budget import PICKS

TRIALS = 4

pytestmark = [pytest.mark.landing, pytest.mark.timeout(900), pytest.mark.alone]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with model.mlir tuned for Vulkan into tuned/; its untuned code is slow on every device known."""
    require_vulkan()
    folder = tmp_path_factory.mktemp("vulkan")
    (folder / "model.mlir").write_text(matmul(100, 100, 100).text)
    ended = run(folder, "tune", "model.mlir", "--target", "vulkan", "--trials", str(TRIALS), "--json")
    assert ended.returncode == 0, ended.stderr
    return folder


def test_tuning_gains_and_says_so(tuned: Path) -> None:
    summary = json.loads((tuned / "tuned" / "summary.json").read_text())
    assert summary["target"] == "vulkan"
    assert summary["trials"] == TRIALS
    (dispatch,) = summary["dispatches"]
    assert dispatch["tuned"]["ratio_low"] > 1.0
    assert summary["program"]["tuned"]["ratio"] > 1.0
    assert summary["program"]["verdict"] == "right"
    assert not dispatch["failures"]


def test_plain_iree_compile_applies_what_was_emitted(tuned: Path) -> None:
    summary = json.loads((tuned / "tuned" / "summary.json").read_text())
    (symbol,) = [dispatch["symbol"] for dispatch in summary["dispatches"]]
    flags = (f"@{tuned / 'tuned' / 'flags.txt'}",)
    assert applied_sequences(tuned / "model.mlir", flags, None) == {symbol: 1}
    done = subprocess.run(
        [str(iree_compile_path()), *flags, str(tuned / "model.mlir"), "-o", str(tuned / "model.vmfb")],
        capture_output=True,
        check=False,
    )
    assert (done.returncode, b"error" in done.stderr) == (0, False)


def test_a_kernel_takes_less_than_its_invocation(tuned: Path) -> None:
    """Times are the device's: an invocation takes milliseconds more, of which none is the kernel's."""
    summary = json.loads((tuned / "tuned" / "summary.json").read_text())
    (dispatch,) = summary["dispatches"]
    assert 0 < dispatch["tuned"]["median_s"] < dispatch["untuned"]["median_s"]


def test_the_library_replays(tuned: Path) -> None:
    ended = run(tuned, "replay", "tuned", "model.mlir", "--json")
    result = json.loads(ended.stdout)
    assert (ended.returncode, result["problems"]) == (0, [])
    (sequence,) = result["sequences"]
    assert (sequence["state"], sequence["applied"], sequence["problems"]) == ("as tuned", 1, [])


def test_inspect_shows_decisions_and_target(tuned: Path) -> None:
    (sequence,) = json.loads(run(tuned, "inspect", "tuned", "--json").stdout)["sequences"]
    assert sequence["provenance"]["target"].startswith("vulkan ")
    assert any(decision["name"].startswith("tile_") for decision in sequence["trace"]["decisions"])


def test_a_store_keeps_targets_apart(tuned: Path) -> None:
    """The CPU's run in the same store finds nothing of Vulkan's, and measures all of its own."""
    options = ("--store", "tuned/records.sqlite", "--trials", "2", "--threads", "1", "--json")
    ended = run(tuned, "tune", "model.mlir", "-o", "cpu", *options)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["evaluated"] == 2
    with RecordStore.open(tuned / "tuned" / "records.sqlite") as store:
        tasks = {task.key: task for task in store.tasks()}
        assert len({task.target_key for task in tasks.values()}) == 2
        sketches = [
            {r.trace.sketch for c in store.contexts(key) for r in store.records(key, c) if r.trace} for key in tasks
        ]
    assert not sketches[0] & sketches[1] - {"lowering_config"}


def test_a_folder_for_another_target_is_refused(tuned: Path) -> None:
    ended = run(tuned, "tune", "model.mlir", "-o", "tuned", "--trials", "1")
    assert ended.returncode == 2
    assert "holds results for the target vulkan, not llvm-cpu" in ended.stderr
    flags = tuned / "tuned" / "flags.txt"
    text = flags.read_text()
    try:
        flags.write_text(text.replace("target-device=vulkan", "target-device=local"))
        ended = run(tuned, "replay", "tuned", "model.mlir")
    finally:
        flags.write_text(text)
    assert ended.returncode == 2
    assert "the folder is for another target" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.nightly
def test_without_a_search_a_few_candidates_are_measured(tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(matmul(100, 100, 100).text)
    ended = run(tmp_path, "tune", "model.mlir", "--target", "vulkan", "--trials", "0", "--json")
    assert ended.returncode == 0, ended.stderr
    summary = json.loads(ended.stdout)
    assert 0 < summary["trials"] == sum(summary["one_shot"]["candidates"].values()) <= PICKS
    assert summary["measured"]
    assert summary["program"]["verdict"] == "right"
    assert summary["program"]["tuned"]["ratio"] >= NO_LOSS
