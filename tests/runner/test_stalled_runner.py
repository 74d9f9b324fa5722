"""A machine that stalls or fails beside the measurements costs none of them, and no candidate is blamed for it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from iree.compiler.tools import compile_str
from iree_cases import FLAGS
from measured_programs import CHECKS, SOURCES, SQUARE, failure_of, only

from mlir_sched.errors import EnvironmentFailureError, Failure, FailureClass, FailureOrigin
from mlir_sched.preflight import doctor
from mlir_sched.runner import (
    BaselineError,
    CheckOptions,
    RacingOptions,
    Runner,
    RunnerOptions,
    TimeoutOptions,
    client,
    protocol,
)
from mlir_sched.runner.program import Program
from mlir_sched.runner.protocol import RequestFailed
from mlir_sched.runner.worker.server import _failure

pytestmark = pytest.mark.alone

STALL_S = 1.3
"""Seconds of a stall: longer than the second that one call of a program may take."""
OPTIONS = RunnerOptions(racing=RacingOptions(budget_s=0.05), checks=CheckOptions(data_race_calls=0))
IMPATIENT = replace(OPTIONS, timeouts=TimeoutOptions(bookkeeping_s=0.3))


@pytest.fixture(scope="module")
def right() -> Program:
    code = compile_str((SOURCES / "right.mlir").read_text(), extra_args=FLAGS)
    return Program(code, "task", (SQUARE, SQUARE), (SQUARE,), True)


@pytest.fixture
def stalled(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[type, float], list[int]]]:
    """Return a function that has the process stand still when it is asked such a request; a list counts the stalls."""
    timers: list[threading.Timer] = []

    def plant(request: type, seconds: float) -> list[int]:
        exchange, stalls = client.RunnerClient._exchange, list[int]()

        def stalling(self: Any, child: Any, asked: object, *rest: Any) -> Any:
            if isinstance(asked, request) and not stalls:
                stalls.append(child.pid)
                child.send_signal(signal.SIGSTOP)
                timers.append(threading.Timer(seconds, child.send_signal, (signal.SIGCONT,)))
                timers[-1].start()
            return exchange(self, child, asked, *rest)

        monkeypatch.setattr(client.RunnerClient, "_exchange", stalling)
        return stalls

    yield plant
    for timer in timers:
        timer.cancel()


@pytest.mark.landing
@pytest.mark.parametrize("request_type", [protocol.Drop, protocol.Load])
def test_a_process_that_stands_still_in_its_bookkeeping_is_waited_for(
    stalled: Callable[[type, float], list[int]], right: Program, request_type: type
) -> None:
    stalls = stalled(request_type, STALL_S)
    with Runner(OPTIONS) as runner:
        result = only(runner, right, right)
        assert result.timing is not None
        assert stalls == [runner._client.pid], "the same process goes on"


def test_what_was_measured_holds_although_the_process_is_lost_when_programs_are_released(
    stalled: Callable[[type, float], list[int]], right: Program
) -> None:
    stalled(protocol.Drop, 600.0)
    with Runner(IMPATIENT) as runner:
        assert only(runner, right, right).timing is not None
        assert only(runner, right, right).timing is not None, "the next task gets a new process"


def test_a_program_whose_hand_over_takes_too_long_is_no_failure_of_the_candidate(
    stalled: Callable[[type, float], list[int]], right: Program
) -> None:
    stalled(protocol.Load, 600.0)
    with Runner(IMPATIENT) as runner:
        failure = failure_of(only(runner, right, right))
    assert (failure.kind, failure.origin) == (FailureClass.RUN_TIMEOUT, FailureOrigin.ENVIRONMENT)


def test_a_program_whose_process_stands_still_is_not_blamed_for_its_time(
    stalled: Callable[[type, float], list[int]], right: Program
) -> None:
    stalled(protocol.Verify, 600.0)
    with Runner(OPTIONS) as runner:
        failure = failure_of(only(runner, right, right))
    assert (failure.kind, failure.origin) == (FailureClass.RUN_TIMEOUT, FailureOrigin.ENVIRONMENT)


@pytest.mark.landing
def test_noise_that_cannot_be_measured_leaves_no_spare_core_and_is_a_finding(
    stalled: Callable[[type, float], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlir_sched.runner.runner.other_cores", lambda _: (min(os.sched_getaffinity(0)),))
    stalled(protocol.MeasureNoise, 600.0)
    with Runner(IMPATIENT) as runner:
        assert runner.spare_cores() == ()
    stalled(protocol.MeasureNoise, 600.0)
    with Runner(IMPATIENT) as runner, pytest.raises(EnvironmentFailureError, match="stopped after"):
        runner.noise(0.1)
    stalled(protocol.MeasureNoise, 600.0)
    monkeypatch.setattr(doctor, "RunnerOptions", lambda: IMPATIENT)
    (finding,) = doctor._attempt("timing noise", lambda: doctor._noise(0.1))
    assert "noise cannot be measured" in finding.value


def test_doctor_survives_any_error() -> None:
    def look() -> list[doctor.Finding]:
        raise RequestFailed(Failure(FailureClass.RUN_CRASH, "planted"))

    assert [finding.value for finding in doctor._attempt("a thing", look)] == ["planted"]


def test_a_baseline_may_be_slow_but_not_endless(right: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call tells how long it took, and the limit of what follows grows with that."""
    slow = TimeoutOptions(first_call_s=30.0, baseline_s=0.0, factor=1e5)
    with Runner(replace(OPTIONS, timeouts=slow)) as runner:
        assert runner.measure(right, [], CHECKS)[0].samples
    heard = list[float]()

    def no_time(_: TimeoutOptions, seconds: float) -> float:
        heard.append(seconds)
        return 0.0

    monkeypatch.setattr(TimeoutOptions, "of_preparing", no_time)
    with Runner(OPTIONS) as runner, pytest.raises(BaselineError, match="stopped after 0 s"):
        runner.measure(right, [], CHECKS)
    assert heard
    assert all(seconds > 0 for seconds in heard)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), MemoryError("no room")])
def test_full_files_and_memory_of_the_runner_are_the_machines(error: Exception) -> None:
    assert _failure(error).origin is FailureOrigin.ENVIRONMENT
    assert _failure(RuntimeError("a program's")).origin is FailureOrigin.CANDIDATE
