"""What an emitted program is compared with: the fastest variants, and the default where all are clearly slower."""

from __future__ import annotations

import pytest
from plans import flagged

from mlir_sched.outcome import Timing
from mlir_sched.program.variant import BuiltVariant, Rivals
from mlir_sched.tasks import Model


def built(name: str, call_s: float | None) -> BuiltVariant:
    timing = None if call_s is None else Timing(call_s, call_s, call_s, 6, 1.0, 1.0, 1.0)
    return BuiltVariant(flagged(name), Model("model.mlir", (), (), ()), b"", timing, ())


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
