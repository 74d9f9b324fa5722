"""Which untuned variants are measured once more beside the emitted program."""

from __future__ import annotations

from dataclasses import replace

import pytest
from replayed_run import TARGET, matmul_dispatch, task_of

from mlir_sched.emission.finalists import Winner
from mlir_sched.emission.rivals import expected_s, rivals_of
from mlir_sched.outcome import Timing
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.tasks import Model
from mlir_sched.trace import Trace

DISPATCH = matmul_dispatch(64, 96, 32)


def timing(median_s: float) -> Timing:
    return Timing(median_s, median_s, median_s, 9, 1.0, 1.0, 1.0)


def built(name: str, seconds: float) -> BuiltVariant:
    return BuiltVariant(Variant(name, ()), Model("model.mlir", (), (), ()), b"", timing(seconds), ())


def winner(untuned_s: float, tuned_s: float, weight: int = 1) -> Winner:
    task = replace(task_of("matmul", DISPATCH), weight=weight)
    space = DesignSpace(Space.default(TARGET), DISPATCH, TARGET)
    return Winner(task, space, Trace("sketch", ()), "", "", timing(tuned_s), timing(untuned_s), "tuned_0", 0)


@pytest.mark.parametrize(
    ("winners", "seconds"),
    [
        ([], 4.0),
        ([winner(3.0, 0.1)], 1.1),
        ([winner(3.9, 0.1), winner(0.3, 0.2)], 0.3),
        ([winner(1.0, 0.1, weight=4)], 0.4),
    ],
)
def test_what_has_no_script_takes_as_long_as_before(winners: list[Winner], seconds: float) -> None:
    assert expected_s(built("tuned", 4.0), winners) == pytest.approx(seconds)


def test_clearly_slower_variants_are_not_measured_again() -> None:
    tuned, close, slow = built("tuned", 4.0), built("close", 0.5), built("slow", 3.0)
    assert rivals_of(tuned, [winner(4.0, 0.3)], [tuned, close, slow]) == ([close], [tuned, slow])
    assert rivals_of(tuned, [], [tuned, close, slow]) == ([tuned, close, slow], [])
