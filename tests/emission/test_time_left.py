"""Sessions at the end of a run by time fit into what is left of the run."""

from __future__ import annotations

import math
import time

import pytest

from mlir_sched.emission.time_left import LEAST_REPORT_S, LONGEST_REPORT_S, TimeLeft
from mlir_sched.program.closing import AFTER_S, checking_s, session_s
from mlir_sched.runner import RunnerOptions
from mlir_sched.targets.target import LOCAL

FINAL = RunnerOptions.final(LOCAL)
PROGRAMS_S = [0.2, 0.1, 0.1, 0.1]
"""Seconds per call of the default program and of three others."""


def left(seconds: float) -> TimeLeft:
    return TimeLeft(time.monotonic() + AFTER_S + seconds)


def test_without_a_limit_sessions_are_as_long_as_they_should_be() -> None:
    assert TimeLeft().deciding(FINAL, PROGRAMS_S, PROGRAMS_S[0]) == FINAL
    assert TimeLeft().reporting(FINAL, 0.2) == FINAL
    assert TimeLeft().affords(1e9)


@pytest.mark.parametrize("seconds", [26.0, 40.0])
def test_the_session_that_decides_leaves_time_for_the_one_that_reports(seconds: float) -> None:
    options = left(seconds).deciding(FINAL, PROGRAMS_S, PROGRAMS_S[0])
    default_s, *others_s = PROGRAMS_S
    rest_s = seconds - session_s(options, default_s, others_s)
    fewest_s = checking_s([default_s] * 2) + FINAL.racing.min_slow_pairs * 2 * default_s
    assert rest_s >= fewest_s
    assert options.racing.planned_pairs(0.3) < FINAL.racing.planned_pairs(0.3) or seconds == 40.0


def test_a_session_without_time_takes_the_fewest_pairs() -> None:
    options = left(-30.0).deciding(FINAL, PROGRAMS_S, PROGRAMS_S[0])
    assert options.racing.planned_pairs(0.3) == FINAL.racing.min_slow_pairs


@pytest.mark.parametrize(
    ("seconds", "sampled"), [(-9.0, LEAST_REPORT_S), (10.0, 10.0 - checking_s([0.2] * 2)), (900.0, LONGEST_REPORT_S)]
)
def test_the_session_that_reports_fills_the_time_that_is_left(seconds: float, sampled: float) -> None:
    options = left(seconds).reporting(FINAL, 0.2)
    assert options.racing.budget_s == pytest.approx(sampled, abs=0.1)
    assert options.racing.overtime == 1.0


def test_an_endless_limit_is_none() -> None:
    assert FINAL.within(math.inf) == FINAL
