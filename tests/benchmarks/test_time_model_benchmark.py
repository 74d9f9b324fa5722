"""The benchmark of the model of a GPU's time, on candidates that were measured on a GPU."""

from __future__ import annotations

import gzip
import json
from math import inf
from pathlib import Path

import pytest
from measured_tasks import draws, failed, measured_task, timed
from replayed_run import TARGET, matmul_dispatch, task_of
from speedups import timing

from benchmarks.devices import time_model
from benchmarks.devices.time_model import FIRST_FORMAT, H200, Ranking, collect, measured_in, ranking_of
from mlir_sched.corpus.files import SUFFIX, files_in, read_task, write_task
from mlir_sched.database import RecordStore
from mlir_sched.database.record import Origin, Record, StoredTask, measuring_context
from mlir_sched.errors import UserError
from mlir_sched.outcome import Outcome, Verdict
from mlir_sched.targets import absent_target

FIRST, SECOND, THIRD = draws(3)
HERE = measuring_context(TARGET)


def test_ranks_are_compared_and_refused_code_is_the_last_choice() -> None:
    ranking = Ranking("p", [4.0, 1.0, 2.0, 3.0], [5.0, inf, 1.0, 2.0])
    assert ranking.correlation == pytest.approx(1.0)
    assert ranking.excess(1) == 2.0
    assert ranking.excess(4) == 1.0


def first_format(*lines: object) -> bytes:
    return gzip.compress("\n".join(map(json.dumps, lines)).encode(), mtime=0)


def test_files_of_both_formats_give_the_valid_candidates(tmp_path: Path) -> None:
    header = {"format": FIRST_FORMAT, "task": "product"}
    lines = [
        {"trace": FIRST.to_json(), "features": [1.0], "seconds": 2e-3},
        {"trace": SECOND.to_json(), "seconds": None},
    ]
    (tmp_path / "first").write_bytes(first_format(header, *lines))
    assert measured_in(tmp_path / "first") == ("product", [(FIRST, 2e-3)])
    write_task(tmp_path / "second", measured_task([timed(FIRST, 2.0), failed(SECOND)]))
    assert measured_in(tmp_path / "second") == ("matmul", [(FIRST, 5e-4)])


@pytest.mark.parametrize(
    "content",
    [
        b"plain text",
        gzip.compress(b"", mtime=0),
        gzip.compress(b"not json", mtime=0),
        first_format([]),
        first_format({"format": "another"}),
        first_format({"format": FIRST_FORMAT}),
        first_format({"format": FIRST_FORMAT, "task": "a"}, {"trace": 5, "seconds": 1.0}),
        first_format({"format": FIRST_FORMAT, "task": "a"}, {"trace": FIRST.to_json(), "seconds": "fast"}),
    ],
)
def test_what_is_no_file_of_measured_candidates_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(UserError, match=f"{tmp_path / 'a'}"):
        measured_in(tmp_path / "a")


def test_the_dispatch_with_most_candidates_of_a_tuned_folder_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "matmul_1024"
    folder.mkdir()
    monkeypatch.setattr(time_model, "H200", tmp_path)
    with RecordStore.open(folder / "records.sqlite") as store:
        for name, traces in (("little", [FIRST]), ("product", [FIRST, SECOND, THIRD])):
            task = task_of(name, matmul_dispatch(64, 96, 128))
            store.add_task(StoredTask.of(task, TARGET))
            outcomes = [Outcome(timing(1e-3, 1.0 + n), None, verdict=Verdict.RIGHT) for n in range(len(traces) + 1)]
            made = [(Origin.UNTUNED, None), *((Origin.SCRIPT, trace) for trace in traces)]
            store.add(
                Record(task.key, HERE, trace.key if trace else "untuned", origin, trace, "", outcome, 0, 0)
                for (origin, trace), outcome in zip(made, outcomes, strict=True)
            )
    file = collect(folder)
    assert file == tmp_path / f"matmul_1024{SUFFIX}"
    task_read = read_task(file)
    assert (task_read.name, task_read.traces) == ("product", (FIRST, SECOND, THIRD))
    assert task_read.seconds.tolist() == pytest.approx([1e-3 / 2, 1e-3 / 3, 1e-3 / 4], rel=1e-3)
    (tmp_path / "conv2d").mkdir()
    RecordStore.open(tmp_path / "conv2d" / "records.sqlite").close()
    with pytest.raises(UserError, match="no candidate was measured"):
        collect(tmp_path / "conv2d")


def test_what_was_measured_on_a_gpu_is_read() -> None:
    read = [measured_in(file) for file in files_in(H200)]
    assert len(read) == 7
    assert all(min(seconds for _, seconds in candidates) > 0 for _, candidates in read)


@pytest.mark.nightly
def test_measured_candidates_are_compiled_assembled_and_ranked() -> None:
    file = H200 / f"matmul_4096_f16{SUFFIX}"
    ranking = ranking_of(file, absent_target("cuda:sm_90"))
    assert len(ranking.measured_s) == len(measured_in(file)[1]) > 20
    assert ranking.correlation > 0.9
    assert ranking.excess(4) < 1.1
