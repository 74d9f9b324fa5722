"""The results of slow baselines, which processes of a run keep for each other: whose they are, and what goes wrong."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from measured_programs import CHECKS, FAST, VECTOR, Compiled

from mlir_sched.payload import TensorSpec
from mlir_sched.runner import Runner, TimeoutOptions, client, protocol
from mlir_sched.runner.checks.check import Check, InputKind
from mlir_sched.runner.program import Program
from mlir_sched.runner.worker import kept_references
from mlir_sched.runner.worker.kept_references import KeptReferences, KnownResults
from mlir_sched.tensors.parameters import ParameterFile
from mlir_sched.tensors.values import FunctionValues, TensorValue

NAME = "references-one"
RESULTS = KnownResults(CHECKS, ((np.ones(4, np.float32),), (np.zeros(4, np.float32),)), frozenset())


def request(baseline: Program | None = None, *checks: Check, silent: bool = False) -> protocol.Prepare:
    program = baseline or Program(b"code", "main", (VECTOR, VECTOR), (VECTOR,), False)
    return protocol.Prepare(program, checks or CHECKS, silent)


def given(number: float) -> Check:
    value = TensorValue.of(np.full(VECTOR.shape, number, np.float32), "x.npy")
    return Check(InputKind.GIVEN, 0, given=FunctionValues("main", (value, value)))


PROGRAM = request().baseline
OTHERS = {
    "code": request(replace(PROGRAM, vmfb=b"other code")),
    "function": request(replace(PROGRAM, entry="other")),
    "inputs": request(replace(PROGRAM, inputs=(VECTOR, TensorSpec((1000,), "i32")))),
    "thread": request(replace(PROGRAM, local_sync=True)),
    "seed": request(None, CHECKS[0], replace(CHECKS[1], seed=3)),
    "given": request(None, given(1.0)),
    "other given": request(None, given(2.0)),
    "silent": request(silent=True),
}


def test_no_two_of_other_code_inputs_and_seeds_have_the_same_name(tmp_path: Path) -> None:
    weights = [tmp_path / name for name in ("a.irpa", "b.irpa")]
    for number, file in enumerate(weights):
        file.write_bytes(bytes(number))
    of_weights = (request(replace(PROGRAM, parameters=(ParameterFile("", str(file)),))) for file in weights)
    names = [KeptReferences.name_of(each) for each in (request(), *OTHERS.values(), *of_weights)]
    assert len({*names}) == len(OTHERS) + 3


def test_equal_requests_have_the_same_name_however_they_are_made() -> None:
    apart = replace(PROGRAM, inputs=(TensorSpec((1000,), "f32"), TensorSpec((1000,), "f32")))
    assert request(apart) == request()
    assert KeptReferences.name_of(request(apart)) == KeptReferences.name_of(request())


def test_what_a_process_that_died_has_left_is_neither_found_nor_takes_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_references, "MOST_BYTES", 100)
    (tmp_path / f"{NAME}.{os.getpid() + 1}").write_bytes(bytes(100))
    kept = KeptReferences(tmp_path)
    assert kept.find(NAME) is None
    kept.keep(NAME, RESULTS)
    assert [file.name for file in tmp_path.iterdir()] == [NAME]
    found = kept.find(NAME)
    assert found is not None
    np.testing.assert_array_equal(found.results, RESULTS.results)


def test_on_a_full_disk_nothing_is_kept_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    kept = KeptReferences(tmp_path)
    kept.keep(NAME, RESULTS)
    assert kept.find(NAME) is None
    assert not [*tmp_path.iterdir()]


def test_results_that_cannot_be_read_are_computed_again(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    assert KeptReferences(tmp_path).find(NAME) is None


@pytest.mark.promise
def test_the_processes_of_a_run_find_the_results_of_a_slow_baseline(
    model: Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard, limit = list[float](), TimeoutOptions.of_preparing

    def noted(self: TimeoutOptions, seconds: float) -> float:
        heard.append(seconds)
        return limit(self, seconds)

    monkeypatch.setattr(TimeoutOptions, "of_preparing", noted)
    monkeypatch.setattr(client, "session_folder", lambda: tmp_path)
    counts = list[int]()
    for _ in range(2):
        heard.clear()
        with Runner(FAST) as runner:
            timing, _ = runner.measure(model("model_slow"), [], CHECKS)
        assert timing.median_s > protocol.LONG_CALL_S
        counts.append(len(heard))
    assert counts == [len(CHECKS), 0]
