"""Choices among finalists, and sessions at the end of a run by time, fit into what is left of the run."""

from __future__ import annotations

import math
import time

import pytest
from fixed_targets import FIXED, FIXED_VULKAN

from mlir_sched.emission.time_left import (
    FIRST_CHOICE_S,
    LEAST_REPORT_S,
    LONGER_REPORT_S,
    LONGEST_REPORT_S,
    REPORT_ONLY_S,
    RIVALS,
    Pace,
    TimeLeft,
)
from mlir_sched.program.closing import AFTER_S, REFERENCE_CALLS, SHORT_SESSION_S, checking_s, loading_s, session_s
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
def test_the_session_that_decides_leaves_time_for_loading_and_for_the_one_that_reports(seconds: float) -> None:
    options = left(seconds).deciding(FINAL, PROGRAMS_S, PROGRAMS_S[0])
    default_s, *others_s = PROGRAMS_S
    rest_s = seconds - session_s(options, default_s, others_s)
    fewest_s = checking_s([default_s] * 2) + FINAL.racing.min_slow_pairs * 2 * default_s
    assert rest_s >= fewest_s + loading_s(FINAL, [default_s] * 2)
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
    assert FINAL.capped(math.inf) == FINAL


ON_CPU, ON_DEVICE = (RunnerOptions.final(target.driver) for target in (FIXED, FIXED_VULKAN))


def pace(
    options: RunnerOptions, *, untuned_s: float = 1e-3, minor: int = 0, tasks: int = 1, seconds: float = 30.0
) -> Pace:
    start = time.monotonic()
    return Pace.after(minor, start - minor * 0.1, seconds, [(untuned_s, 1e-3)] * tasks, options)


@pytest.mark.parametrize(("untuned_s", "has_time"), [(1e-3, True), (0.2, False)])
def test_there_is_time_for_a_choice_where_all_other_scripts_can_be_taken_afterwards(
    untuned_s: float, has_time: bool
) -> None:
    found = pace(ON_CPU, untuned_s=untuned_s, minor=10, tasks=30, seconds=31.0)
    assert found.seconds == pytest.approx(30.0, abs=0.5)
    assert found.has_time(0, ()) == has_time


def test_minor_tasks_show_what_a_report_takes_besides_its_samples() -> None:
    assert pace(ON_CPU, minor=10).report_only_s[0] == pytest.approx(0.1, abs=0.05)
    assert pace(ON_CPU).report_only_s[0] == pytest.approx(REPORT_ONLY_S, abs=0.05)


def test_slow_untuned_code_makes_reports_long() -> None:
    """Six pairs, and the calls of the checks."""
    found = pace(ON_CPU, untuned_s=0.1, minor=10).report_only_s[0]
    assert found == pytest.approx(0.1 + (6 + REFERENCE_CALLS) * 0.1, abs=0.25)


def test_short_calls_on_the_cpu_take_what_was_measured_there() -> None:
    found = pace(ON_CPU)
    assert (found.first_choice_s, found.longer_report_s) == (FIRST_CHOICE_S, LONGER_REPORT_S)


def test_where_samples_are_processes_choices_and_reports_take_what_these_take() -> None:
    """The samples are as many as the budget holds, of a short session as few as give an interval."""
    found = pace(ON_DEVICE)
    pair_s = 2 * ON_DEVICE.samples.sample_s(1e-3)
    budget_s, short_s = ON_DEVICE.racing.budget_s, ON_DEVICE.racing.min_slow_pairs * pair_s
    assert found.first_choice_s >= RIVALS * (budget_s - pair_s) > FIRST_CHOICE_S
    assert found.longer_report_s == pytest.approx(budget_s - short_s, abs=pair_s)
    assert found.report_only_s[0] == pytest.approx(REPORT_ONLY_S + short_s - SHORT_SESSION_S, abs=0.05)


def test_the_choices_made_show_what_another_one_takes() -> None:
    start = time.monotonic() - 10.0
    found = Pace(start, 30.0, [1.0], first_choice_s=4.0, longer_report_s=1.0)
    assert [found.has_time(decided, ()) for decided in (1, 2)] == [True, True]
    assert [Pace(start, 18.0, [1.0], 4.0, 1.0).has_time(decided, ()) for decided in (1, 2)] == [False, True]
    assert not Pace(start, 18.0, [1.0], 4.0, 1.0).has_time(2, ("a", "b"))
