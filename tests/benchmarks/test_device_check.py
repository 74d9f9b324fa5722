"""The first run on a device; the CPU stands in for it, and fixed results for tuned programs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from contraction_payloads import matmul
from measured_programs import fake_program

from benchmarks.devices.device_check import speeds
from benchmarks.devices.device_check.candidates import Numbers
from benchmarks.devices.device_check.command import SAMPLED, TUNED
from benchmarks.devices.device_check.report import Report
from benchmarks.devices.device_check.speeds import Speed, Speeds, tune_programs
from benchmarks.figures.publishing import Publishing
from benchmarks.folders import ROOT, path_of
from benchmarks.search.enumeration import Size
from benchmarks.search.space_audit import SketchAudit
from mlir_sched.errors import UserError
from mlir_sched.outcome import Timing, Verdict
from mlir_sched.targets import absent_target
from mlir_sched.targets.target import LOCAL_SYNC, MatrixUnit, Target
from mlir_sched.tuned_folder.result import DispatchResult, ProgramResult, TuneResult
from mlir_sched.tuning.options import TuneOptions

TIMING = Timing(1e-3, 1e-3, 1e-3, 9, 1.5, 1.4, 1.6)
PROGRAM = ProgramResult(TIMING, TIMING, {}, "default", LOCAL_SYNC, verdict=Verdict.RIGHT)
DISPATCH = DispatchResult("matmul", "a product", "key", 2, TIMING, replace(TIMING, median_s=1e-4))
RESULT = TuneResult(
    "m.mlir", "cuda", 1, 0, 8, 8, 1.0, 1.0, {}, False, PROGRAM, {}, (), (DISPATCH,), None, "store", (), None, None, {}
)
AUDIT = SketchAudit(
    "small", "task", "shared", Size(9.0), 12, 8, 4, 3, {"wrong_result": 1}, {"wrong_result": "all zeros"}
)


def test_every_program_of_the_check_is_there() -> None:
    for name in (*SAMPLED, *TUNED):
        assert path_of(name).is_file()
    with pytest.raises(UserError, match=r"neither a \.mlir file nor"):
        path_of("matmul_7")


@pytest.mark.nightly
def test_random_candidates_are_compared_on_the_device(tmp_path: Path) -> None:
    (tmp_path / "small.mlir").write_text(matmul(16, 16, 16).text)
    options = ("--target", "llvm-cpu", "--threads", "1", "--candidates", "2", "--sample", "small.mlir", "--tune")
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "device_check",
        *options,
        "--json",
        "found.json",
        "--markdown",
        "found.md",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    sampled = sum(audit["sampled"] for audit in found["numbers"]["audits"])
    assert sampled > 2
    assert not found["numbers"]["problems"]
    assert f"{sampled} of {sampled} random candidates compile, run and are right." in done.stdout
    assert (tmp_path / "found.md").read_text() == done.stdout


@pytest.mark.promise
def test_the_time_is_divided_among_the_programs(monkeypatch: pytest.MonkeyPatch, here: Target, tmp_path: Path) -> None:
    asked = list[TuneOptions]()

    def tuned(path: Path, folder: str, options: TuneOptions) -> TuneResult:
        asked.append(options)
        if path.stem == "softmax":
            raise UserError("it cannot be tuned")
        return RESULT

    monkeypatch.setattr(speeds, "tune", tuned)
    times = {"matmul_256": {"call_s": 2e-5, "row_s": 1e-5}, "softmax": None}
    python = fake_program(tmp_path, f"echo '{json.dumps({'version': '2.11', 'times': times})}'")
    found = tune_programs(
        ["matmul_256", "softmax"], here, "llvm-cpu", threads=1, python=python, until_s=time.monotonic() + 240, seed=7
    )
    assert [round(options.minutes or 0.0) for options in asked] == [2, 4], "what one program leaves is for the others"
    assert {options.seed for options in asked} == {7}
    (speed,) = found.speeds
    assert (speed.flops, speed.torch_call_s, speed.torch_row_s) == (2 * 256**3, 2e-5, 1e-5)
    assert found.problems == ("PyTorch 2.11 on cpu", "softmax: it cannot be tuned")


@pytest.mark.promise
def test_without_time_or_pytorch_the_report_says_so(here: Target) -> None:
    now_s = time.monotonic()
    found = tune_programs(["softmax"], here, "llvm-cpu", threads=1, python=sys.executable, until_s=now_s, seed=0)
    assert not found.speeds
    assert found.problems[0].startswith("PyTorch: ModuleNotFoundError")
    assert found.problems[1] == "softmax: no time was left to tune it"


@pytest.mark.promise
def test_the_share_of_the_peak_is_that_of_all_dispatches() -> None:
    resources = absent_target("cuda:sm_90").gpu_resources
    assert resources is not None
    peak = 2 * 128 * 132 * 1.83e9
    assert Speed("matmul", 10**10, RESULT).share_of_peak(resources) == pytest.approx(10**10 / 2e-4 / peak)
    assert Speed("matmul_f16", 10**10, RESULT).share_of_peak(resources) == pytest.approx(10**10 / 2e-4 / (16 * peak))
    assert Speed("matmul", 10**10, RESULT).share_of_peak(None) is None


@pytest.mark.promise
def test_the_report_shows_failures_and_figures(tmp_path: Path) -> None:
    target = absent_target("cuda:sm_90")
    assert target.gpu is not None
    units = frozenset({MatrixUnit(16, 8, 16, "f16", "f32")})
    target = replace(target, gpu=replace(target.gpu, cooperative_matrices=units))
    numbers = Numbers((AUDIT,), ("norm: no module schedules it",), ("softmax",))
    speeds = Speeds((Speed("matmul", 10**10, RESULT, 2e-5),), ("PyTorch 2.11",))
    report = Report(target, numbers, speeds, 90.0, 0, Publishing(None, (), "python -m benchmarks device_check"))
    text = report.text
    assert "3 of 4 random candidates compile, run and are right." in text
    assert "| shared | 1 | 3 of 4 | 3 | wrong_result 1 |" in text
    assert "- small shared: wrong_result: all zeros" in text
    assert "- no time was left for the candidates of softmax" in text
    assert "| matmul | 1.00 ms | 1.00 ms | 1.50 (1.40 to 1.60) | 200 us | 80.9 % | 20.0 us | - | 8 |" in text
    report.write(None, tmp_path / "found.json")
    found = json.loads((tmp_path / "found.json").read_text())["target"]["gpu"]["cooperative_matrices"]
    assert found == [asdict(unit) for unit in units]
