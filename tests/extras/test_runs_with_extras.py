"""Runs of ``mlir-sched tune`` with the cost models that need an extra."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from folders import ROOT


@pytest.mark.promise
@pytest.mark.parametrize("model", ["gaussian-process", "graph"])
def test_a_run_searches_with_the_model_and_says_how_well_it_ranked(model: str, tmp_path: Path) -> None:
    program = ROOT / "examples" / "linear_silu.mlir"
    options = ["--trials", "40", "--threads", "1", "--cost-model", model, "--json"]
    line = [sys.executable, "-m", "mlir_sched.cli", "tune", str(program), "-o", str(tmp_path / "tuned"), *options]
    result = subprocess.run(line, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert 0 <= json.loads(result.stdout)["model_accuracy"] <= 1
