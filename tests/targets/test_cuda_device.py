"""NVIDIA GPUs of this machine as targets; a library that answers for the driver stands in for it."""

from __future__ import annotations

import shutil
import subprocess
from ctypes.util import find_library
from pathlib import Path

import pytest
from command_line import run

from mlir_sched.errors import UserError
from mlir_sched.preflight.doctor import Status, diagnose
from mlir_sched.targets import cuda, detect_target
from mlir_sched.targets.clock import CALLS
from mlir_sched.targets.devices.cuda_devices import newest_known
from mlir_sched.targets.target import Driver

SOURCE = Path(__file__).with_name("cuda_stand_in.c")
FIRST, SECOND = "cuda://GPU-00010203-0405-0607-0809-0a0b0c0d0e0f", "cuda://GPU-10111213-1415-1617-1819-1a1b1c1d1e1f"
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: install one, e.g. gcc")


def driver(folder: Path, monkeypatch: pytest.MonkeyPatch, *, failure: int = 0, name: str = "libcuda.so") -> None:
    """Install a driver of three devices whose ``cuInit`` returns a number."""
    library = folder / name
    subprocess.run(["cc", "-shared", "-fPIC", f"-DFAILURE={failure}", SOURCE, "-o", library], check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))


@pytest.mark.promise
@needs_compiler
@pytest.mark.parametrize(
    ("name", "uri", "flag"),
    [
        ("cuda", FIRST, "--iree-cuda-target=sm_80"),
        ("cuda:h100", FIRST, "--iree-cuda-target=sm_80"),
        ("cuda:sm_90", FIRST, "--iree-cuda-target=sm_80"),
        ("cuda:A10", SECOND, "--iree-cuda-target=sm_86"),
        ("cuda:sm_86", SECOND, "--iree-cuda-target=sm_86"),
    ],
)
def test_a_device_of_this_machine_is_described_by_what_its_driver_says(
    name: str, uri: str, flag: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    driver(tmp_path, monkeypatch)
    target = detect_target(name, None)
    assert target.driver == Driver(uri, CALLS)
    assert flag in target.flags
    assert target.gpu is not None
    assert target.gpu.workgroup_size == (1024, 1024, 64), "IREE's own limit along z is 1024"
    assert target.gpu.shared_memory_bytes <= (232448 if uri == FIRST else 101376)
    assert dict(target.machine)["device"] == ("NVIDIA H100 80GB HBM3" if uri == FIRST else "NVIDIA A10")
    assert "CUDA 13.2" in target.description
    assert target.gpu_resources is not None
    assert (target.gpu_resources.multiprocessors, target.gpu_resources.threads) == (
        (132, 2048) if uri == FIRST else (72, 1536)
    )
    assert target.gpu_resources.memory_bytes_per_s == pytest.approx(3.35e12, rel=0.01), "NVIDIA's figure for an H100"
    assert target.assembler == ("sm_90" if uri == FIRST else "sm_86")


@pytest.mark.promise
@needs_compiler
def test_a_gpu_that_is_not_there_is_an_error_that_lists_those_that_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    driver(tmp_path, monkeypatch)
    there = r"NVIDIA H100 80GB HBM3 \(sm_90\), NVIDIA A10 \(sm_86\), Tesla T4 \(sm_75\)"
    with pytest.raises(UserError, match=rf"no NVIDIA GPU 'b200' is here \({there}\)"):
        detect_target("cuda:b200", None)
    with pytest.raises(UserError, match=r"Tesla T4 is sm_75; the oldest supported GPUs are sm_80"):
        detect_target("cuda:T4", None)
    with pytest.raises(UserError, match="takes no number of threads"):
        detect_target("cuda", 2)


@pytest.mark.promise
@needs_compiler
@pytest.mark.parametrize(
    ("failure", "name", "said"),
    [(100, "libcuda.so", "cuInit fails with error 100"), (0, "libcuda.so.1", "IREE loads libcuda.so, and only")],
)
def test_a_driver_that_cannot_be_used_is_an_error_that_says_why(
    failure: int, name: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    driver(tmp_path, monkeypatch, failure=failure, name=name)
    if name != "libcuda.so" and _is_installed():
        pytest.skip("this machine has a libcuda.so of its own")
    with pytest.raises(UserError, match=said):
        cuda.devices()


@pytest.mark.promise
def test_without_a_driver_tune_ends_with_the_advice(tmp_path: Path) -> None:
    if _is_installed():
        pytest.skip("this machine has an NVIDIA driver")
    (tmp_path / "model.mlir").write_text("func.func @main() { return }\n")
    ended = run(tmp_path, "tune", "model.mlir", "--target", "cuda")
    assert ended.returncode == 2
    assert "no NVIDIA driver is installed" in ended.stderr
    assert "--check-only needs no GPU" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.promise
@needs_compiler
def test_doctor_shows_the_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    driver(tmp_path, monkeypatch)
    found = {finding.name: finding for finding in diagnose(noise_s=0.1).findings}
    assert found["cuda: processor"].value == "NVIDIA H100 80GB HBM3 (sm_90)"
    assert found["cuda: processor"].status is Status.OK
    assert "32 dispatches" in found["cuda: clock"].value


@pytest.mark.parametrize(
    ("capability", "target"), [((8, 0), "sm_80"), ((8, 7), "sm_86"), ((8, 9), "sm_89"), ((10, 0), "sm_80")]
)
def test_ptx_is_made_for_the_newest_architecture_that_a_device_runs(capability: tuple[int, int], target: str) -> None:
    known = newest_known(capability)
    assert known is not None
    assert known.compiled_for == target


def _is_installed() -> bool:
    """Say whether this machine has NVIDIA's driver."""
    return find_library("cuda") is not None
