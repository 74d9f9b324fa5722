"""Calls that change the state of a program begin anew after a few calls, and before every sample."""

from __future__ import annotations

from collections.abc import Callable

from mlir_sched.runner.worker.calibration import Calibration
from mlir_sched.runner.worker.sequences import MOST_CALLS, RestartedCalls
from mlir_sched.runner.worker.wall_clock import Callee, WallClock


class Contexts:
    """Counts the calls in every context that is begun."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def begin(self) -> Callable[[int], None]:
        self.calls.append(0)

        def run(calls: int) -> None:
            self.calls[-1] += calls

        return run


def test_calls_begin_anew_where_the_state_may_be_full() -> None:
    contexts = Contexts()
    run = RestartedCalls(contexts.begin)
    for calls in (3, 2 * MOST_CALLS, 1):
        run(calls)
    assert contexts.calls == [MOST_CALLS, MOST_CALLS, 4]


def test_every_sample_begins_in_the_same_state_and_has_no_reset_inside() -> None:
    contexts, clock = Contexts(), WallClock(Calibration((0,), 0.08))
    run = RestartedCalls(contexts.begin)
    callee = Callee(run, restart=run.restart, most_calls=MOST_CALLS)
    for calls in (1, 3, 1000):
        clock.sample(callee, calls)
    assert contexts.calls == [0, 2, 4, MOST_CALLS]
