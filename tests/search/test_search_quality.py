"""The benchmark of search quality on a small table that was measured whole."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from folders import ROOT
from measured_tasks import measured_task, timed, whole_task

from benchmarks.search.search_quality import SYNTHETIC_SHAPES, measured_space, sources_in
from mlir_sched.corpus.files import write_task
from mlir_sched.errors import UserError


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_task(tmp_path / "small.jsonl.gz", whole_task())
    return tmp_path / "small.jsonl.gz"


def run(*arguments: object) -> str:
    command = [sys.executable, "-m", "benchmarks", "search_quality", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout


@pytest.mark.promise
def test_repeated_runs_print_and_write_the_same(table: Path, tmp_path: Path) -> None:
    options = ("--seeds", 2, "--trials", 32)
    first = run(table, *options, "--json", tmp_path / "1.json")
    second = run(table, *options, "--json", tmp_path / "2.json")
    assert first == second
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()
    runs = json.loads((tmp_path / "1.json").read_text())
    assert len(runs) == 4
    assert all(run["best_s"] == sorted(run["best_s"], reverse=True) for run in runs)
    assert all(name in first for name in ("evolution", "random", "matmul"))


def test_a_table_has_the_candidates_that_are_legal_today(table: Path) -> None:
    task, space = whole_task(), measured_space(table)
    assert [trace.key for trace in space.traces] == [trace.key for trace in task.traces]
    assert [space.seconds(trace) for trace in space.traces] == pytest.approx(task.seconds.tolist(), rel=1e-3)
    assert space.features(space.traces).tolist() == task.features().tolist()


def test_folders_stand_for_their_files(table: Path) -> None:
    assert sources_in([table.parent, table]) == [table, table]
    assert sources_in([]) == SYNTHETIC_SHAPES
    (empty := table.parent / "empty").mkdir()
    with pytest.raises(UserError, match="there is no table in"):
        sources_in([empty])


def test_a_sample_and_a_table_without_a_valid_candidate_are_refused(tmp_path: Path) -> None:
    whole = whole_task()
    write_task(tmp_path / "sample", measured_task([timed(whole.traces[0])]))
    with pytest.raises(UserError, match="sample holds a sample of a design space"):
        measured_space(tmp_path / "sample")
    write_task(tmp_path / "none", measured_task(complete=True))
    with pytest.raises(UserError, match=r"none cannot be searched: .*; 0 of its candidates are not legal today"):
        measured_space(tmp_path / "none")
