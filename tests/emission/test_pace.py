"""Time for choices among finalists: what they and all reports take, estimated before and after the first of them."""

from __future__ import annotations

import time

import pytest
from fixed_targets import FIXED, FIXED_VULKAN

from mlir_sched.emission.pace import FIRST_CHOICE_S, REPORTING_S, RIVALS, TAKING_S, Pace
from mlir_sched.program.closing import BRIEF_S
from mlir_sched.runner import RunnerOptions

ON_CPU, ON_DEVICE = (RunnerOptions.final(target.driver) for target in (FIXED, FIXED_VULKAN))


def pace(
    options: RunnerOptions, *, untuned_s: float = 1e-3, light: int = 0, tasks: int = 1, seconds: float = 30.0
) -> Pace:
    start = time.monotonic()
    return Pace.after(light, start - light * 0.1, seconds, [(untuned_s, 1e-3)] * tasks, options)


@pytest.mark.parametrize(("untuned_s", "has_time"), [(1e-3, True), (0.1, False)])
def test_there_is_time_for_a_choice_where_all_other_scripts_can_be_taken_afterwards(
    untuned_s: float, has_time: bool
) -> None:
    found = pace(ON_CPU, untuned_s=untuned_s, light=10, tasks=30, seconds=31.0)
    assert found.seconds == pytest.approx(30.0, abs=0.5)
    assert found.has_time(0, ()) == has_time


def test_light_tasks_show_what_a_report_takes_besides_its_samples() -> None:
    assert pace(ON_CPU, light=10).taking_s[0] == pytest.approx(0.1, abs=0.05)
    assert pace(ON_CPU).taking_s[0] == pytest.approx(TAKING_S, abs=0.05)


def test_slow_untuned_code_makes_reports_long() -> None:
    """Six pairs with a call that warms up, and the calls of the checks."""
    assert pace(ON_CPU, untuned_s=0.1, light=10).taking_s[0] == pytest.approx(0.1 + (6 + 6) * 0.1, abs=0.25)


def test_short_calls_on_the_cpu_take_what_was_measured_there() -> None:
    found = pace(ON_CPU)
    assert (found.first_choice_s, found.reporting_s) == (FIRST_CHOICE_S, REPORTING_S)


def test_where_samples_are_processes_choices_and_reports_take_what_these_take() -> None:
    """The samples are as many as the budget holds, of a brief session as few as give an interval."""
    found = pace(ON_DEVICE)
    pair_s = 2 * ON_DEVICE.samples.sample_s(1e-3)
    budget_s, brief_s = ON_DEVICE.racing.budget_s, ON_DEVICE.racing.min_slow_pairs * pair_s
    assert found.first_choice_s >= RIVALS * (budget_s - pair_s) > FIRST_CHOICE_S
    assert found.reporting_s == pytest.approx(budget_s - brief_s, abs=pair_s)
    assert found.taking_s[0] == pytest.approx(TAKING_S + brief_s - BRIEF_S, abs=0.05)


def test_the_choices_made_show_what_another_one_takes() -> None:
    start = time.monotonic() - 10.0
    found = Pace(start, 30.0, [1.0], first_choice_s=4.0, reporting_s=1.0)
    assert [found.has_time(decided, ()) for decided in (1, 2)] == [True, True]
    assert [Pace(start, 18.0, [1.0], 4.0, 1.0).has_time(decided, ()) for decided in (1, 2)] == [False, True]
    assert not Pace(start, 18.0, [1.0], 4.0, 1.0).has_time(2, ("a", "b"))
