"""What becomes of random programs, how it is judged, and where it is kept."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fuzzed_programs import product_of, results_of
from stored_records import TASK, draw_trace, make_record, timed

from benchmarks.fuzz import command
from benchmarks.fuzz import judge as judging
from benchmarks.fuzz.command import lines
from benchmarks.fuzz.draft import Array
from benchmarks.fuzz.judge import SURPRISE, Fate, Judgement, judge, unproven
from benchmarks.fuzz.programs import random_program
from mlir_sched.database import RecordStore
from mlir_sched.errors import FailureClass, UserError
from mlir_sched.outcome import Timing, Verdict
from mlir_sched.tuned_folder.result import DispatchResult, ProgramResult, TuneResult

CHOSEN = (8, 500)
"""Seeds of programs that are tuned here, both with scripts: two results of f16 and bytes, three of bytes and f32."""
TIMING = Timing(1e-3, 1e-3, 1e-3, 9, 1.5, 1.4, 1.6)
PROGRAM = ProgramResult(TIMING, TIMING, {}, "default", "local-sync", verdict=Verdict.RIGHT)
UNTUNED = DispatchResult("product", "a product", TASK.key, 1, TIMING)
RESULT = TuneResult(
    "m.mlir", "llvm-cpu", 1, 0, 4, 4, 1.0, 1.0, {}, False, PROGRAM, {}, (), (UNTUNED,), "tuned", "store", (), None,
    None, {},
)  # fmt: skip
MODEL = product_of("f32")
RIGHT = results_of(MODEL)
ZEROS = [np.zeros_like(array) for array in RIGHT]


@pytest.mark.landing
@pytest.mark.sweep("nightly", keep="500")
@pytest.mark.long
@pytest.mark.parametrize("seed", CHOSEN)
def test_a_random_program_is_tuned_and_right(seed: int, tmp_path: Path) -> None:
    found = judge(random_program(seed), tmp_path, seed=seed, trials=4)
    assert found.fate in (Fate.TUNED, Fate.UNTUNED), found


class Planted:
    """A run and compiled programs that a test makes up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.plain, self.tuned, self.run = RIGHT, RIGHT, RESULT
        self.error: Exception | None = None
        self._folder = folder
        monkeypatch.setattr(judging, "compiled", lambda *arguments: arguments[-1])
        monkeypatch.setattr(judging, "outputs", lambda file, *_: self._outputs(file))
        monkeypatch.setattr(judging, "tune_shortly", lambda *_, **__: self._result())
        monkeypatch.setattr(judging, "unproven", lambda _: "")

    def fate(self) -> Fate:
        """Return what becomes of the product."""
        return judge(MODEL, self._folder, seed=0, trials=4).fate

    def _outputs(self, file: Path) -> list[Array]:
        return self.plain if file.name == "plain.vmfb" else self.tuned

    def _result(self) -> TuneResult:
        if self.error is not None:
            raise self.error
        return self.run


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Planted:
    return Planted(monkeypatch, tmp_path)


@pytest.mark.promise
def test_refusals_are_told_apart_from_errors(planted: Planted) -> None:
    planted.error = UserError("a reason")
    assert planted.fate() is Fate.REFUSED
    planted.error = KeyError("a mistake")
    assert planted.fate() is Fate.INTERNAL


@pytest.mark.promise
def test_wrong_numbers_are_a_fault_unless_plain_iree_is_wrong_too(planted: Planted) -> None:
    assert planted.fate() is Fate.UNTUNED
    planted.tuned = ZEROS
    assert planted.fate() is Fate.WRONG
    planted.plain = ZEROS
    assert planted.fate() is Fate.MISCOMPILED
    planted.error = UserError("the untuned code is wrong")
    assert planted.fate() is Fate.MISCOMPILED


@pytest.mark.promise
def test_an_internal_error_of_a_candidate_is_a_fault(planted: Planted) -> None:
    failures = {FailureClass.INTERNAL_ERROR.value: 1}
    planted.run = replace(RESULT, dispatches=(replace(UNTUNED, failures=failures),))
    assert planted.fate() is Fate.INTERNAL
    planted.plain = ZEROS
    assert planted.fate() is Fate.INTERNAL


def test_a_script_without_a_right_record_as_fast_is_unproven(tmp_path: Path) -> None:
    path, trace, outcome = tmp_path / "store", draw_trace(7), timed(7)
    assert outcome.timing is not None
    reported = replace(TIMING, ratio=outcome.timing.ratio_high)
    script = replace(UNTUNED, symbol="s", sketch=trace.sketch, decisions=trace.values, tuned=reported)
    faster = replace(script, tuned=replace(reported, ratio=1.01 * SURPRISE * reported.ratio))
    other = replace(script, decisions={**trace.values, "unroll": -1})
    with RecordStore.open(path) as store:
        store.add_task(TASK)
        store.add([make_record("unchecked", replace(outcome, verdict=Verdict.NOT_CHECKED), trace=trace)])

    def missing(dispatch: DispatchResult) -> str:
        return unproven(replace(RESULT, dispatches=(dispatch,), store=str(path)))

    assert missing(UNTUNED) == ""
    assert missing(script) != ""
    with RecordStore.open(path) as store:
        store.add([make_record("right", outcome, trace=trace)])
    assert missing(script) == ""
    assert missing(faster) != ""
    assert missing(other) != ""


def test_programs_that_were_judged_are_not_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judged = list[int]()

    def made_up(seed: int, trials: int) -> Judgement:
        judged.append(seed)
        return Judgement(seed, Fate.WRONG if seed == 1 else Fate.TUNED, "3 of 4", trials, {"wrong_result": 1})

    monkeypatch.setattr(command, "_judged", made_up)
    for programs, code in ((2, 1), (3, 1), (1, 0)):
        arguments = ["fuzz", "--programs", str(programs), "--judgements", str(tmp_path / "found.jsonl")]
        monkeypatch.setattr(sys, "argv", arguments)
        assert command.main() == code
    assert judged == [0, 1, 2]
    assert (tmp_path / "found-1.mlir").read_text() == random_program(1).text
    assert "seed 1: WRONG NUMBERS: 3 of 4" in capsys.readouterr().out


def test_figures_count_fates_and_failures() -> None:
    found = [
        Judgement(0, Fate.TUNED, "", 4, {"compile_error": 2}), Judgement(1, Fate.TUNED, "", 4),
        Judgement(2, Fate.INTERNAL, "Traceback\n  KeyError: 1\n", 0),
    ]  # fmt: skip
    assert lines(found) == [
        "    3 programs",
        "    2 tuned, right",
        "    1 INTERNAL ERROR",
        "    8 candidates; failed: 2 compile_error",
        "seed 2: INTERNAL ERROR: KeyError: 1",
    ]
