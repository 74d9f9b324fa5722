"""The benchmark of assembled candidates: small runs, one of which was cut off, and its tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from contraction_payloads import matmul

from benchmarks.devices.cuda_assembly.records import Entry, append_entries, read_entries
from benchmarks.folders import ROOT
from mlir_sched.compiler.compile_result import Launch
from mlir_sched.gpu_model.ptxas import Resources


def run(folder: Path, traces: int) -> str:
    command = [sys.executable, "-m", "benchmarks", "cuda_assembly", "tiny.mlir", "--records", "found.jsonl"]
    further = ["--traces", str(traces), "--target", "cuda:sm_80"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin:/usr/local/bin"}
    done = subprocess.run(
        [*command, *further], cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=True
    )
    return done.stdout


@pytest.mark.nightly
@pytest.mark.timeout(1300)
def test_a_run_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    (tmp_path / "tiny.mlir").write_text(matmul(64, 64, 64).text)
    records = tmp_path / "found.jsonl"
    whole = run(tmp_path, 1)
    lines = records.read_text().splitlines(keepends=True)
    records.write_text("".join(lines[:-2]) + lines[-1][:100])
    assert run(tmp_path, 1) == whole
    assert sorted(map(len, records.read_text().splitlines(keepends=True))) == sorted(map(len, lines))
    for sketch in ("shared_contraction", "contraction.threads", "lowering_config"):
        assert any(line.startswith(f"| {sketch} | 1 | ") and " 1 of 1 " in line for line in whole.splitlines())
    assert "| tiny | untuned | " in whole
    assert "| tiny | first | " in whole


ENTRY = Entry(
    "m", "s", "k", {"tile": (4, 2)}, "", Launch((2, 1, 1), (8, 4, 1), 64), "// PTX", {"sm_80": Resources(40, 0)}
)


def test_an_entry_is_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    assert list(append_entries(path, [ENTRY])) == [ENTRY]
    (found,) = read_entries(path).values()
    assert (found.name, found.launch, found.ptx, found.resources) == (
        ENTRY.name,
        ENTRY.launch,
        ENTRY.ptx,
        ENTRY.resources,
    )
    assert found.trouble("sm_80") == ""


@pytest.mark.parametrize(
    ("entry", "trouble", "late"),
    [
        (Entry("m", "s", "k", {}, "compile_error: no"), "compile_error", False),
        (Entry("m", "s", "k", {}, "compile_timeout: stopped after 60 s"), "compile_timeout", True),
        (Entry("m", "s", "k", {}, refused={"sm_80": "ptxas warns: no"}), "assembly_error", False),
        (Entry("m", "s", "k", {}, refused={"sm_90": "ptxas stopped after 60 s"}), "", True),
    ],
)
def test_a_candidate_that_ran_out_of_time_is_no_result(entry: Entry, trouble: str, late: bool) -> None:
    assert (entry.trouble("sm_80"), entry.ran_out_of_time) == (trouble, late)
