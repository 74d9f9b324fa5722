"""How long the end of a run takes follows from what its beginning measured."""

from __future__ import annotations

import pytest
from fixed_targets import FIXED_VULKAN
from plans import flagged

from mlir_sched.outcome import Timing
from mlir_sched.program.closing import (
    AFTER_S,
    CHECK_CALLS,
    FINALIST_S,
    LOADING_CALLS,
    REFERENCE_CALLS,
    SESSION_S,
    Rivals,
    emission_s,
    finalist_s,
    least_emission_s,
    loading_s,
    session_s,
)
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.runner import RunnerOptions
from mlir_sched.targets.target import LOCAL
from mlir_sched.tasks import Model

FINAL = RunnerOptions.final(LOCAL)


def built(name: str, call_s: float | None, build_s: float = 3.0) -> BuiltVariant:
    timing = None if call_s is None else Timing(call_s, call_s, call_s, 6, 1.0, 1.0, 1.0)
    return BuiltVariant(flagged(name), Model("model.mlir", (), (), ()), b"", timing, (), build_s=build_s)


def test_a_session_takes_the_pairs_of_its_programs_and_their_checks() -> None:
    checks_s = SESSION_S + REFERENCE_CALLS * 0.25 + CHECK_CALLS * 0.375
    assert session_s(FINAL, 0.25, [0.125, 0.25]) == 16 * 0.375 + 12 * 0.5 + checks_s
    assert session_s(FINAL, 1e-5, [1e-5]) == pytest.approx(FINAL.racing.budget_s + SESSION_S, abs=0.01)
    assert session_s(FINAL, 0.05, [0.05]) == pytest.approx(
        2 * 20 * 0.1 + SESSION_S + (REFERENCE_CALLS + CHECK_CALLS) * 0.05
    )


def test_on_a_device_every_sample_of_a_session_has_a_process_and_a_call_that_warms_up() -> None:
    device = RunnerOptions.final(FIXED_VULKAN.driver)
    pair_s = (1 + 1) * 3.0 + (2 + 1) * 0.5 + 2 * device.samples.overhead_s
    pairs_s = device.racing.min_slow_pairs * pair_s
    assert session_s(device, 3.0, [0.5]) == pytest.approx(
        pairs_s + SESSION_S + REFERENCE_CALLS * 3.0 + CHECK_CALLS * 0.5
    )


def test_loading_takes_a_process_and_its_calls_per_program_and_is_measured_on_the_cpu_only() -> None:
    assert loading_s(FINAL, [0.25, 0.5]) == 2 * SESSION_S + LOADING_CALLS * 0.75
    assert loading_s(RunnerOptions.final(FIXED_VULKAN.driver), [0.25, 0.5]) == 0.0


def test_a_finalist_takes_longer_where_every_sample_has_a_process() -> None:
    assert finalist_s(FINAL, 1e-3) == FINALIST_S
    device = RunnerOptions.final(FIXED_VULKAN.driver)
    pair_s = 2 * device.samples.sample_s(1e-3)
    assert device.racing.min_slow_pairs * pair_s > FINALIST_S
    assert finalist_s(device, 1e-3) == pytest.approx(device.racing.min_slow_pairs * pair_s)


DEFAULT, CLOSE, CLOSER, SLOW = built("default", 4.0), built("close", 0.5), built("closer", 0.4), built("slow", 3.0)


@pytest.mark.parametrize(
    ("tuned_s", "rivals"),
    [
        (2.0, Rivals(CLOSER, (CLOSE, SLOW, DEFAULT), ())),
        (1.5, Rivals(CLOSER, (CLOSE, SLOW), (DEFAULT,))),
        (0.3, Rivals(CLOSER, (CLOSE,), (DEFAULT, SLOW))),
        (0.1, Rivals(DEFAULT, (), (CLOSE, CLOSER, SLOW), undisputed=True)),
    ],
)
def test_the_reference_is_the_fastest_variant_and_clearly_slower_ones_are_not_measured(
    tuned_s: float, rivals: Rivals
) -> None:
    assert Rivals.of([DEFAULT, CLOSE, CLOSER, SLOW, built("broken", None)], tuned_s) == rivals


def test_rivals_that_there_is_no_time_for_are_taken_as_slow() -> None:
    rivals = Rivals(CLOSER, (CLOSE, SLOW), (DEFAULT,))
    assert rivals.at_most(1) == Rivals(CLOSER, (CLOSE,), (DEFAULT, SLOW))


def test_a_reference_that_fails_is_no_rival_any_more() -> None:
    rivals = Rivals(CLOSER, (CLOSE,), (DEFAULT, SLOW))
    assert rivals.against(DEFAULT) == Rivals(DEFAULT, (CLOSE,), (SLOW,))


def test_where_none_may_be_as_fast_one_session_is_enough() -> None:
    default = built("default", 0.2)
    expected = 3.0 + session_s(FINAL, 0.2, [0.05]) + loading_s(FINAL, [0.2, 0.05]) + AFTER_S
    assert emission_s([default, built("near", 0.15)], default, FINAL, 0.05) == pytest.approx(expected)


def test_only_variants_that_may_be_as_fast_are_measured_again() -> None:
    default, near, far = built("default", 0.2), built("near", 0.15), built("far", 0.9)
    sessions_s = session_s(FINAL, 0.15, [0.1, 0.2]) + session_s(FINAL, 0.2, [0.1])
    expected = 3.0 + sessions_s + loading_s(FINAL, [0.2, 0.1]) + AFTER_S
    assert emission_s([default, near, far], near, FINAL, 0.1) == pytest.approx(expected)


def test_the_session_that_decides_is_short_where_the_default_is_clearly_slower() -> None:
    default, near = built("default", 4.0), built("near", 0.15)
    sessions_s = session_s(FINAL, 0.15, [0.1]) + session_s(FINAL, 4.0, [0.1])
    expected = 3.0 + sessions_s + loading_s(FINAL, [4.0, 0.1]) + AFTER_S
    assert emission_s([default, near], near, FINAL, 0.1) == pytest.approx(expected)


FEWEST = FINAL.capped(0.0)


@pytest.mark.parametrize(
    ("tuned_s", "sessions_s"),
    [
        pytest.param(1.5, session_s(FEWEST, 1.2, [1.5, 1.9]), id="the session with the default is the only one"),
        pytest.param(0.8, session_s(FEWEST, 1.2, [0.8]) + session_s(FEWEST, 1.9, [0.8]), id="the default is slow"),
        pytest.param(0.1, session_s(FEWEST, 1.9, [0.1]), id="all are far slower"),
    ],
)
def test_at_least_a_slow_program_is_timed_beside_the_default_once(tuned_s: float, sessions_s: float) -> None:
    default, near = built("default", 1.9), built("near", 1.2)
    assert least_emission_s([default, near], near, FINAL, tuned_s) == pytest.approx(3.0 + sessions_s + AFTER_S)
    assert least_emission_s([default, near], near, FINAL, tuned_s) < emission_s([default, near], near, FINAL, tuned_s)


def test_a_program_is_expected_to_stay_as_fast_as_it_is() -> None:
    default, near = built("default", 0.2), built("near", 0.15)
    assert emission_s([default, near], near, FINAL) == emission_s([default, near], near, FINAL, 0.15)


def test_a_program_that_was_not_timed_is_only_compiled() -> None:
    default = built("default", None)
    for seconds in (emission_s, least_emission_s):
        assert seconds([default], default, FINAL, float("inf")) == 3.0 + AFTER_S
