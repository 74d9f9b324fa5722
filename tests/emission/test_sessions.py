"""How long the emitted program is expected to take."""

from __future__ import annotations

from dataclasses import replace

import pytest
from plans import flagged
from replayed_run import TARGET, matmul_dispatch, task_of

from mlir_sched.emission.finalists import Winner
from mlir_sched.emission.sessions import with_scripts_s
from mlir_sched.outcome import Timing
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.tasks import Model
from mlir_sched.trace import Trace

DISPATCH = matmul_dispatch(64, 96, 32)


def timing(median_s: float) -> Timing:
    return Timing(median_s, median_s, median_s, 9, 1.0, 1.0, 1.0)


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
    built = BuiltVariant(flagged("tuned"), Model("model.mlir", (), (), ()), b"", timing(4.0), ())
    assert with_scripts_s(built, winners) == pytest.approx(seconds)
