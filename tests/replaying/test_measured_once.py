"""A script holds if its only measurement says so: there is no second try for one that loses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from replayed_run import matmul_dispatch, task_of

from mlir_sched.compiler import CompileResult
from mlir_sched.errors import Failure, FailureClass
from mlir_sched.outcome import Timing, Verdict
from mlir_sched.replaying import replay as module
from mlir_sched.replaying.replay_result import ReplayedSequence, ReplayResult
from mlir_sched.replaying.script_state import ScriptState
from mlir_sched.runner import RunResult


@pytest.mark.parametrize(
    ("ratios", "problem"),
    [
        ((1.2, 1.1, 1.3), ""),
        ((0.9, 0.8, 0.95), "slower than the untuned dispatch now: 0.90x (0.80 to 0.95)"),
        ((1.05, 0.95, 1.15), "not shown to be faster than the untuned dispatch now: 1.05x (0.95 to 1.15)"),
    ],
)
def test_one_measurement_decides(
    ratios: tuple[float, float, float], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions: list[object] = []
    timing = Timing(1e-3, 1e-3, 1e-3, 20, *ratios)

    def measure(task: object, *_: object) -> tuple[Timing, list[RunResult]]:
        sessions.append(task)
        return timing, [RunResult(timing, None, verdict=Verdict.RIGHT)]

    compiled = [CompileResult(b"", None, "", 0.1, code) for code in ("untuned", "script")]
    monkeypatch.setattr(module, "compile_scripts", lambda *_: [compiled])
    monkeypatch.setattr(module, "measure_compiled", measure)
    sequence = ReplayedSequence("tuned", "dispatch", ScriptState.AS_TUNED, "", "1.2")
    task = task_of("matmul", matmul_dispatch(64, 96, 32))
    found = module._measured(sequence, task, "the script", cast("Any", None), cast("Any", None))
    assert sessions == [task]
    assert found.problems == ((problem,) if problem else ())
    assert (found.timing, found.code) == (timing, "script")


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (RunResult(Timing(1e-3, 1e-3, 1e-3, 1, 0.2, 0.2, 0.2), None), "its numbers were not checked"),
        (RunResult(None, Failure(FailureClass.WRONG_RESULT, "3 of 9 differ")), "wrong_result: 3 of 9 differ"),
        (RunResult(None, Failure(FailureClass.RUN_TIMEOUT, "no result")), "run_timeout: no result"),
    ],
)
def test_a_folder_whose_numbers_were_not_all_checked_is_not_right(result: RunResult, problem: str) -> None:
    sequence = module._with_result(ReplayedSequence("tuned", "dispatch", ScriptState.EDITED, "", ""), result)
    whole = ReplayResult("", "", (sequence,), None, None, None, (), (), verdict=Verdict.RIGHT)
    assert sequence.problems == (problem,)
    assert sequence.verdict is result.verdict
    assert not whole.is_right
    assert replace(whole, sequences=(replace(sequence, verdict=Verdict.RIGHT),)).is_right
    assert not replace(whole, sequences=(), verdict=Verdict.NOT_CHECKED).is_right
