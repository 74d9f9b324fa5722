"""``tune --check-only``: scripts for a GPU that is not there, proven applied and ranked by a model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli
from contraction_payloads import matmul

from mlir_sched import RecordStore
from mlir_sched.gpu_model import ptxas

pytestmark = pytest.mark.promise


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.mlir").write_text(matmul(256, 256, 256).text)
    return Cli(tmp_path, capsys)


def check_only(cli: Cli, *further: str) -> tuple[str, dict[str, Any]]:
    ended = cli("tune", "model.mlir", "--check-only", "--trials", "8", *further)
    assert ended.code == 0, ended.err
    return ended.out, json.loads((cli.folder / "tuned" / "summary.json").read_text())


def test_a_library_is_written_and_says_that_nothing_was_measured(cli: Cli) -> None:
    out, summary = check_only(cli, "--target", "cuda:sm_90")
    assert "NOT MEASURED" in out
    assert "NVIDIA H100 (sm_90)" in out
    assert summary["measured"] is False
    (dispatch,) = summary["dispatches"]
    assert dispatch["tuned"]["median_s"] < dispatch["untuned"]["median_s"]
    library = (cli.folder / "tuned" / "library.mlir").read_text()
    assert 'mlir_sched.not_measured = "estimated:' in library
    assert "mlir_sched.speedup" not in library
    assert "nothing to replay" in cli.refused("replay", "tuned", "model.mlir")


@pytest.mark.landing
def test_a_plain_iree_compile_uses_the_library(cli: Cli) -> None:
    check_only(cli, "--target", "cuda")
    compiler = str(Path(sys.executable).parent / "iree-compile")
    dump = cli.folder / "configured"
    command = [compiler, "@tuned/flags.txt", "model.mlir", "-o", "model.vmfb"]
    subprocess.run([*command, f"--iree-hal-dump-executable-configurations-to={dump}"], check=True, cwd=cli.folder)
    (configured,) = dump.glob("*.mlir")
    assert "mlir_sched.applied" in configured.read_text()


@pytest.mark.landing
def test_estimates_never_meet_measured_times(cli: Cli) -> None:
    check_only(cli, "--target", "cuda")
    with RecordStore.open(cli.folder / "tuned" / "records.sqlite") as store:
        (task,) = store.tasks()
        (context,) = store.contexts(task.key)
        records = [record for record in store.records(task.key, context) if record.outcome.timing]
    assert "estimated by model" in str(context)
    assert all(record.outcome.timing is not None and record.outcome.timing.is_estimated for record in records)


@pytest.mark.landing
def test_without_a_search_the_model_of_the_device_chooses(cli: Cli) -> None:
    out, summary = check_only(cli, "--target", "cuda", "--trials", "0")
    assert summary["one_shot"]["candidates"] == {"device model": 12}
    assert "no search: 12 candidates of 1 dispatch (device model: 12)" in out
    assert summary["dispatches"][0]["tuned"] is not None


@pytest.mark.landing
def test_a_second_run_goes_on_from_the_first(cli: Cli) -> None:
    _, first = check_only(cli, "--target", "cuda")
    _, again = check_only(cli, "--target", "cuda")
    assert first["dispatches"] == again["dispatches"]


@pytest.mark.landing
def test_a_model_with_dispatches_that_no_module_schedules_is_compiled_with_the_best_flags(cli: Cli) -> None:
    (cli.folder / "model.mlir").write_text(SORT)
    out, summary = check_only(cli, "--target", "cuda")
    assert "nothing to schedule" in out
    assert summary["trials"] == 0
    assert summary["dispatches"][0]["note"] == "it sorts (iree_linalg_ext.sort), for which there is no transform module"
    assert (cli.folder / "tuned" / "flags.txt").exists()


SORT = """
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %sorted = iree_linalg_ext.sort dimension(0) outs(%x : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %less = arith.cmpf olt, %a, %b : f32
    iree_linalg_ext.yield %less : i1
  } -> tensor<64xf32>
  return %sorted : tensor<64xf32>
}
"""


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--target", "cuda"), "--check-only needs no GPU: it compiles and assembles candidates"),
        (("--target", "cuda:sm_1", "--check-only"), "known are sm_80, sm_86, sm_89, sm_90"),
        (("--target", "llvm-cpu", "--check-only"), "only these need no device: cuda"),
        (("--target", "rocm", "--check-only"), "no model of its devices by which they could be ranked"),
        (("--target", "metal"), "known are llvm-cpu, vulkan, cuda, rocm"),
    ],
)
def test_what_cannot_be_done_is_one_clear_error(cli: Cli, arguments: tuple[str, ...], why: str) -> None:
    assert why in cli.refused("tune", "model.mlir", *arguments)


def test_without_the_assembler_nothing_begins(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptxas, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "/nonexistent")
    message = cli.refused("tune", "model.mlir", "--check-only", "--target", "cuda")
    assert "pip install 'mlir-sched[cuda]'" in message


NETWORK = """
func.func @main(%image: tensor<1x16x34x34xf32>) -> tensor<1x32x30x30xf32> {
  %zero = arith.constant 0.0 : f32
  %f0 = arith.constant dense<0.5> : tensor<32x16x3x3xf32>
  %f1 = arith.constant dense<0.25> : tensor<32x32x3x3xf32>
  %empty0 = tensor.empty() : tensor<1x32x32x32xf32>
  %init0 = linalg.fill ins(%zero : f32) outs(%empty0 : tensor<1x32x32x32xf32>) -> tensor<1x32x32x32xf32>
  %out0 = linalg.conv_2d_nchw_fchw ins(%image, %f0 : tensor<1x16x34x34xf32>, tensor<32x16x3x3xf32>)
    outs(%init0 : tensor<1x32x32x32xf32>) -> tensor<1x32x32x32xf32>
  %empty1 = tensor.empty() : tensor<1x32x30x30xf32>
  %init1 = linalg.fill ins(%zero : f32) outs(%empty1 : tensor<1x32x30x30xf32>) -> tensor<1x32x30x30xf32>
  %out1 = linalg.conv_2d_nchw_fchw ins(%out0, %f1 : tensor<1x32x32x32xf32>, tensor<32x32x3x3xf32>)
    outs(%init1 : tensor<1x32x30x30xf32>) -> tensor<1x32x30x30xf32>
  return %out1 : tensor<1x32x30x30xf32>
}
"""


@pytest.mark.landing
def test_rewrites_of_the_program_compete_by_their_estimates(cli: Cli) -> None:
    (cli.folder / "model.mlir").write_text(NETWORK)
    out, summary = check_only(cli, "--target", "cuda")
    program = summary["program"]
    assert {"default", "channels_last", "winograd"} <= {*program["variants"], *summary["left_out"]}
    assert f"flags: {program['variant']}" in out
    assert program["variants"]["default"] == 1.0
    assert program["tuned"]["median_s"] < program["untuned"]["median_s"]
    library = (cli.folder / "tuned" / "library.mlir").read_text()
    assert ("mlir_sched.rewrite" in library) == (program["variant"] not in ("default", "O3"))
