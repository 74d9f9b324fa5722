"""Figures that are not exact are said to be so, wherever the result is shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from short_sessions import short_sessions

from mlir_sched import TuneOptions, tune
from mlir_sched.cli.tune import summary_lines
from mlir_sched.emission import export
from mlir_sched.emission.run_result import OF_DECIDING_SESSION
from mlir_sched.tuned_folder.result import ProgramResult, TuneResult

pytestmark = pytest.mark.landing

NOTE = "scf.if in the program: the dispatches inside count as run once"
UNPROVEN = "its proof failed (compile_error): no"
MODEL = """
func.func @main(%x: tensor<128x64xf32>) -> tensor<128x64xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %first = tensor.extract %x[%c0, %c0] : tensor<128x64xf32>
  %positive = arith.cmpf ogt, %first, %zero : f32
  %result = scf.if %positive -> tensor<128x64xf32> {
    %empty = tensor.empty() : tensor<128x64xf32>
    %softmax = linalg.softmax dimension(1) ins(%x : tensor<128x64xf32>)
                                           outs(%empty : tensor<128x64xf32>) -> tensor<128x64xf32>
    scf.yield %softmax : tensor<128x64xf32>
  } else {
    scf.yield %x : tensor<128x64xf32>
  }
  return %result : tensor<128x64xf32>
}
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> TuneResult:
    """Return what tuning a program whose calls cannot be counted finds, with a variant that fails."""
    folder = tmp_path_factory.mktemp("notes")
    (folder / "model.mlir").write_text(MODEL)
    made, emitted = export._Emitter._result, export._Emitter.run

    def of_deciding_session(*known: Any) -> ProgramResult:
        return replace(made(*known), of_deciding_session=True)

    def with_a_variant_unproven(*known: Any) -> export.Emission:
        return replace(emitted(*known), left_out={"O9": UNPROVEN})

    with pytest.MonkeyPatch.context() as patch, short_sessions():
        patch.setattr(export._Emitter, "_result", of_deciding_session)
        patch.setattr(export._Emitter, "run", with_a_variant_unproven)
        return tune(folder / "model.mlir", folder / "tuned", options=TuneOptions(trials=2, round_size=2, threads=1))


def test_figures_that_are_not_exact_are_noted_in_the_result(result: TuneResult) -> None:
    assert result.notes == (NOTE, OF_DECIDING_SESSION)
    assert result.output is not None
    summary = json.loads((Path(result.output) / "summary.json").read_text())
    assert summary["notes"] == [NOTE, OF_DECIDING_SESSION]
    assert summary["program"]["of_deciding_session"]


def test_notes_are_shown_below_the_table_and_in_the_report(result: TuneResult) -> None:
    assert f"note: {NOTE}" in summary_lines(result)
    assert result.output is not None
    assert f"<p>Note: {NOTE}; {OF_DECIDING_SESSION}.</p>" in (Path(result.output) / "report.html").read_text()


def test_a_variant_that_fails_at_the_end_is_named_in_the_result_and_below_the_table(result: TuneResult) -> None:
    assert result.output is not None
    summary = json.loads((Path(result.output) / "summary.json").read_text())
    assert summary["left_out"]["O9"] == UNPROVEN
    assert f"program variants left out (O9): {UNPROVEN}" in summary_lines(result)
