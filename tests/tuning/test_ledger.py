"""What the pieces of a run take is counted, and what is to come follows from what the run has measured."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from fixed_targets import FIXED, FIXED_VULKAN
from plans import flagged

from mlir_sched.database import RecordStore
from mlir_sched.database.engine import StoreOutageError
from mlir_sched.database.work_cost import WorkCost, WorkKind
from mlir_sched.outcome import Timing
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.runner import RunnerOptions
from mlir_sched.tasks import Model
from mlir_sched.tuning.ledger import (
    AFTER_S,
    CHECK_CALLS,
    CHOICE_CANDIDATES,
    FINALIST_S,
    FINALISTS_COMPARED,
    FIRST_CHOICE_S,
    LEAST_CANDIDATES,
    LEAST_REPORT_S,
    LOADING_CALLS,
    LONGER_REPORT_S,
    LONGEST_REPORT_S,
    REFERENCE_CALLS,
    REPORT_CANDIDATES,
    REPORT_ONLY_S,
    SESSION_S,
    SHORT_SESSION_S,
    VARIANT_CALLS,
    End,
    Ledger,
)

ON_CPU, ON_DEVICE = (RunnerOptions.final(target.driver) for target in (FIXED, FIXED_VULKAN))
CPU, DEVICE = Ledger(ON_CPU), Ledger(ON_DEVICE)
RACING = ON_CPU.racing


def built(name: str, call_s: float | None, build_s: float = 3.0) -> BuiltVariant:
    timing = None if call_s is None else Timing(call_s, call_s, call_s, 6, 1.0, 1.0, 1.0)
    return BuiltVariant(flagged(name), Model("model.mlir", (), (), ()), b"", timing, (), build_s=build_s)


def left(seconds: float) -> Ledger:
    """Return the ledger of a run that has so many seconds left for sessions."""
    return Ledger(ON_CPU, until=time.monotonic() + AFTER_S + seconds)


def test_work_that_raises_has_no_cost(tmp_path: Path) -> None:
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        ledger = Ledger(store=store, key="run")
        with pytest.raises(ZeroDivisionError), ledger.counting(WorkKind.UNTUNED, "a task"):
            raise ZeroDivisionError
        with ledger.counting(WorkKind.UNTUNED, "a task"):
            pass
        (cost,) = store.work_costs("run")
    assert ledger.counted == [cost]
    assert 0.0 <= cost.seconds < 60.0


def test_a_store_that_refuses_costs_the_figure_and_not_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise StoreOutageError("full", is_held=False)

    with RecordStore.open(tmp_path / "records.sqlite") as store:
        monkeypatch.setattr(store, "add_work_cost", refuse)
        with Ledger(store=store, key="run").counting(WorkKind.EMISSION, "default"):
            pass
        assert store.work_costs() == ()


def test_another_variant_takes_a_build_and_the_calls_of_all_that_are_timed() -> None:
    assert Ledger(build_s=3.0, call_s=0.5).variants_s(2) == 3.0 + 2 * VARIANT_CALLS * 0.5
    assert Ledger().variants_s(2) == 0.0, "nothing is known before the default is built"


def test_the_plain_program_is_compiled_twice_timed_and_proven_in_the_shortest_session() -> None:
    ledger, default = Ledger(ON_CPU, build_s=3.0, call_s=0.2), built("default", 0.2)
    emitted_s = ledger.emission_s([default], default, least=True)
    assert ledger.plain_s == pytest.approx(3.0 + VARIANT_CALLS * 0.2 + emitted_s)


def test_the_pace_is_that_of_the_tasks_in_question_or_else_of_all_that_were_counted() -> None:
    ledger = Ledger()
    assert ledger.pace_s({"a"}) == 0.0
    for subject, kind, count, seconds in (
        ("a", WorkKind.CANDIDATES, 8, 4.0),
        ("a", WorkKind.CANDIDATES, 2, 1.0),
        ("b", WorkKind.CANDIDATES, 10, 15.0),
        ("a", WorkKind.UNTUNED, 1, 99.0),
    ):
        ledger.add(WorkCost(kind, subject, count, seconds))
    assert [ledger.pace_s(tasks) for tasks in ({"a"}, {"b"}, {"a", "b"}, {"c"})] == [0.5, 1.5, 1.0, 1.0]


def test_a_session_takes_the_pairs_of_its_programs_and_their_checks() -> None:
    checks_s = SESSION_S + REFERENCE_CALLS * 0.25 + CHECK_CALLS * 0.375
    assert CPU.session_s(0.25, [0.125, 0.25]) == 16 * 0.375 + 12 * 0.5 + checks_s
    assert CPU.session_s(1e-5, [1e-5]) == pytest.approx(RACING.budget_s + SESSION_S, abs=0.01)
    calls = 2 * 20 * 2 + REFERENCE_CALLS + CHECK_CALLS
    assert CPU.session_s(0.05, [0.05]) == pytest.approx(calls * 0.05 + SESSION_S)


def test_on_a_device_every_sample_of_a_session_has_a_process_and_a_call_that_warms_up() -> None:
    pair_s = (1 + 1) * 3.0 + (2 + 1) * 0.5 + 2 * ON_DEVICE.samples.overhead_s
    checks_s = SESSION_S + REFERENCE_CALLS * 3.0 + CHECK_CALLS * 0.5
    assert DEVICE.session_s(3.0, [0.5]) == pytest.approx(ON_DEVICE.racing.min_slow_pairs * pair_s + checks_s)


def test_loading_takes_a_process_and_its_calls_per_program_and_is_measured_on_the_cpu_only() -> None:
    assert CPU.loading_s([0.25, 0.5]) == 2 * SESSION_S + LOADING_CALLS * 0.75
    assert DEVICE.loading_s([0.25, 0.5]) == 0.0


def test_finalists_take_longer_where_every_sample_has_a_process() -> None:
    assert CPU.first_finalist_s(built("default", 1e-3)) == FINALIST_S
    assert CPU.first_finalist_s(built("default", None)) == FINALIST_S
    pairs_s = ON_DEVICE.racing.min_slow_pairs * 2 * ON_DEVICE.samples.sample_s(1e-3)
    assert pairs_s > FINALIST_S
    assert DEVICE.first_finalist_s(built("default", 1e-3)) == pytest.approx(pairs_s)


def emission_s(tuned_s: float, *variants: BuiltVariant) -> float:
    return CPU.emission_s(variants, variants[0], tuned_s)


def test_where_none_may_be_as_fast_one_session_is_enough() -> None:
    expected_s = 3.0 + CPU.session_s(0.2, [0.05]) + CPU.loading_s([0.2, 0.05]) + AFTER_S
    assert emission_s(0.05, built("default", 0.2), built("near", 0.15)) == pytest.approx(expected_s)


def test_only_variants_that_may_be_as_fast_are_measured_again() -> None:
    sessions_s = CPU.session_s(0.15, [0.1, 0.2]) + CPU.session_s(0.2, [0.1])
    expected_s = 3.0 + sessions_s + CPU.loading_s([0.2, 0.1]) + AFTER_S
    found_s = emission_s(0.1, built("default", 0.2), built("near", 0.15), built("far", 0.9))
    assert found_s == pytest.approx(expected_s)


def test_the_session_that_decides_is_short_where_the_default_is_clearly_slower() -> None:
    sessions_s = CPU.session_s(0.15, [0.1]) + CPU.session_s(4.0, [0.1])
    expected_s = 3.0 + sessions_s + CPU.loading_s([4.0, 0.1]) + AFTER_S
    assert emission_s(0.1, built("default", 4.0), built("near", 0.15)) == pytest.approx(expected_s)


@pytest.mark.parametrize(
    ("tuned_s", "sessions"),
    [
        pytest.param(1.5, [(1.2, [1.5, 1.9])], id="the session with the default is the only one"),
        pytest.param(0.8, [(1.2, [0.8]), (1.9, [0.8])], id="the default is slow"),
        pytest.param(0.1, [(1.9, [0.1])], id="all are far slower"),
    ],
)
def test_at_least_a_slow_program_is_timed_beside_the_default_once(
    tuned_s: float, sessions: Sequence[tuple[float, Sequence[float]]]
) -> None:
    variants = [built("default", 1.9), near := built("near", 1.2)]
    sessions_s = sum(CPU.session_s(*each, 0.0) for each in sessions)
    least_s = CPU.emission_s(variants, near, tuned_s, least=True)
    assert least_s == pytest.approx(3.0 + sessions_s + AFTER_S)
    assert least_s < CPU.emission_s(variants, near, tuned_s)


def test_a_program_is_expected_to_stay_as_fast_as_it_is() -> None:
    variants = [built("default", 0.2), near := built("near", 0.15)]
    assert CPU.emission_s(variants, near) == CPU.emission_s(variants, near, 0.15)


def test_a_program_that_was_not_timed_is_only_compiled() -> None:
    default = built("default", None)
    for least in (False, True):
        assert CPU.emission_s([default], default, math.inf, least=least) == 3.0 + AFTER_S


def test_reports_and_choices_follow_from_the_candidates_once_some_were_tried() -> None:
    variants = [default := built("default", 0.2)]
    emission_s, least_s = (CPU.emission_s(variants, default, 0.1, least=least) for least in (False, True))
    slow = Ledger(ON_CPU, finalist_s=4.0)
    assert slow.end(variants, default, 0.1, tasks=3) == End(emission_s, 3 * 4.0, least_s)
    scripts_s = 3 * 0.5
    assert slow.end(variants, default, 0.1, tasks=3, candidate_s=0.5) == End(
        emission_s, REPORT_CANDIDATES * scripts_s, least_s + LEAST_CANDIDATES * scripts_s, CHOICE_CANDIDATES * scripts_s
    )


def test_short_calls_on_the_cpu_take_what_was_measured_there() -> None:
    calls_s = 1e-5, 1e-5
    assert (CPU.choice_s(*calls_s), CPU.longer_report_s(*calls_s)) == (FIRST_CHOICE_S, LONGER_REPORT_S)
    assert CPU.report_s(*calls_s) == pytest.approx(REPORT_ONLY_S, abs=0.01)
    assert CPU.report_s(*calls_s, 0.1) == pytest.approx(0.1, abs=0.01), "what reports of other tasks have shown"
    assert CPU.chosen_s(*calls_s) == pytest.approx(FIRST_CHOICE_S + REPORT_ONLY_S + LONGER_REPORT_S, abs=0.01)


def test_slow_untuned_code_makes_reports_long() -> None:
    """Six pairs, and the calls of the checks."""
    assert CPU.report_s(0.1, 1e-3, 0.1) == pytest.approx(0.1 + (6 + REFERENCE_CALLS) * 0.1, abs=0.25)


def test_where_samples_are_processes_choices_and_reports_take_what_these_take() -> None:
    """The samples are as many as the budget holds, of a short session as few as give an interval."""
    pair_s, racing = 2 * ON_DEVICE.samples.sample_s(1e-3), ON_DEVICE.racing
    short_s = racing.min_slow_pairs * pair_s
    assert DEVICE.choice_s(1e-3, 1e-3) >= FINALISTS_COMPARED * (racing.budget_s - pair_s) > FIRST_CHOICE_S
    assert DEVICE.longer_report_s(1e-3, 1e-3) == pytest.approx(racing.budget_s - short_s, abs=pair_s)
    assert DEVICE.report_s(1e-3, 1e-3) == pytest.approx(REPORT_ONLY_S + short_s - SHORT_SESSION_S, abs=0.05)


def test_the_choices_made_show_what_another_one_takes() -> None:
    ledger = Ledger(ON_CPU)
    for kind, seconds in ((WorkKind.CHOICE, 1.0), (WorkKind.REPORT, 90.0), (WorkKind.CHOICE, 2.0)):
        ledger.add(WorkCost(kind, "a task", 1, seconds))
    assert ledger.choice_s(1e-5, 1e-5) == 1.5


PROGRAMS_S = [0.2, 0.1, 0.1, 0.1]
"""Seconds per call of the default program and of three others."""


def test_without_a_limit_sessions_are_as_long_as_they_should_be() -> None:
    assert CPU.deciding_s(PROGRAMS_S, PROGRAMS_S[0]) == math.inf
    assert CPU.reporting_s(0.2) == math.inf
    assert CPU.affords(1e9)
    assert ON_CPU.capped(math.inf) == ON_CPU.lasting(math.inf) == ON_CPU


@pytest.mark.parametrize("seconds", [26.0, 40.0])
def test_the_session_that_decides_leaves_time_for_loading_and_for_the_one_that_reports(seconds: float) -> None:
    default_s, *others_s = PROGRAMS_S
    most_s = left(seconds).deciding_s(PROGRAMS_S, default_s)
    rest_s = seconds - CPU.session_s(default_s, others_s, most_s)
    assert rest_s >= CPU.session_s(default_s, [default_s], 0.0) + CPU.loading_s([default_s] * 2)
    assert ON_CPU.capped(most_s).racing.planned_pairs(0.3) < RACING.planned_pairs(0.3) or seconds == 40.0


def test_a_session_without_time_takes_the_fewest_pairs() -> None:
    most_s = left(-30.0).deciding_s(PROGRAMS_S, PROGRAMS_S[0])
    assert ON_CPU.capped(most_s).racing.planned_pairs(0.3) == RACING.min_slow_pairs


@pytest.mark.parametrize(
    ("seconds", "sampled"),
    [(-9.0, LEAST_REPORT_S), (10.0, 10.0 - CPU.checking_s([0.2] * 2)), (900.0, LONGEST_REPORT_S)],
)
def test_the_session_that_reports_fills_the_time_that_is_left(seconds: float, sampled: float) -> None:
    racing = ON_CPU.lasting(left(seconds).reporting_s(0.2)).racing
    assert racing.budget_s == pytest.approx(sampled, abs=0.1)
    assert racing.overtime == 1.0
