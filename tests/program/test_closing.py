"""How long the end of a run takes follows from what its beginning measured."""

from __future__ import annotations

import pytest

from mlir_sched.outcome import Timing
from mlir_sched.program.closing import AFTER_S, CHECK_CALLS, SESSION_S, emission_s, session_s
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.runner import RunnerOptions
from mlir_sched.tasks import Model

RACING = RunnerOptions.final("local").racing


def built(name: str, call_s: float | None, build_s: float = 3.0) -> BuiltVariant:
    timing = None if call_s is None else Timing(call_s, call_s, call_s, 6, 1.0, 1.0, 1.0)
    return BuiltVariant(Variant(name, ()), Model("model.mlir", (), (), ()), b"", timing, (), build_s=build_s)


def test_a_session_takes_the_pairs_of_its_programs_and_their_checks() -> None:
    assert session_s(RACING, 0.25, [0.125, 0.25]) == 16 * 0.375 + 12 * 0.5 + SESSION_S + CHECK_CALLS * 0.625
    assert session_s(RACING, 1e-5, [1e-5]) == pytest.approx(RACING.budget_s + SESSION_S, abs=0.01)
    assert session_s(RACING, 0.05, [0.05]) == pytest.approx(2 * 20 * 0.1 + SESSION_S + CHECK_CALLS * 0.1)


def test_only_variants_that_may_be_as_fast_are_measured_again() -> None:
    default, near, far = built("default", 0.2), built("near", 0.15), built("far", 0.9)
    expected = 3.0 + session_s(RACING, 0.2, [0.1, 0.15]) + session_s(RACING, 0.2, [0.1]) + AFTER_S
    assert emission_s([default, near, far], near, 0.1, RACING) == pytest.approx(expected)


def test_a_program_that_was_not_timed_is_only_compiled() -> None:
    default = built("default", None)
    assert emission_s([default], default, float("inf"), RACING) == 3.0 + AFTER_S
