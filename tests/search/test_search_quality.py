"""The benchmark of search quality on a small synthetic table."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from folders import ROOT

from benchmarks.search.enumeration import enumerate_traces
from benchmarks.search.measured_space import MeasuredPoint, write_measured
from mlir_sched.search.synthetic_space import SyntheticMatmulSpace

pytestmark = pytest.mark.promise

SPACE = SyntheticMatmulSpace(4, 8, 2)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    traces = [trace for sketch in SPACE.sketches[:2] for trace in enumerate_traces(SPACE, sketch)]
    rows = SPACE.features(traces).tolist()
    points = [MeasuredPoint(t, tuple(row), SPACE.seconds(t)) for t, row in zip(traces, rows, strict=True)]
    write_measured(tmp_path / "small.jsonl.gz", "small", points)
    return tmp_path / "small.jsonl.gz"


def run(*arguments: object) -> str:
    command = [sys.executable, "-m", "benchmarks", "search_quality", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_repeated_runs_print_and_write_the_same(table: Path, tmp_path: Path) -> None:
    options = ("--seeds", 2, "--trials", 32)
    first = run(table, *options, "--json", tmp_path / "1.json")
    second = run(table, *options, "--json", tmp_path / "2.json")
    assert first == second
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()
    runs = json.loads((tmp_path / "1.json").read_text())
    assert len(runs) == 6
    assert all(run["best_s"] == sorted(run["best_s"], reverse=True) for run in runs)
    assert all(name in first for name in ("evolution+model", "random", "small"))
