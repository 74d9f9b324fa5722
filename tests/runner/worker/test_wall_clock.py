"""The clock of the CPU: what a sample counts."""

from __future__ import annotations

import time

import pytest

from mlir_sched.runner.protocol import LONG_CALL_S
from mlir_sched.runner.worker.calibration import Calibration
from mlir_sched.runner.worker.wall_clock import Callee, WallClock

pytestmark = pytest.mark.alone


class Program:
    """Takes ``cold_s`` for its first call and ``warm_s`` for every other one."""

    def __init__(self, cold_s: float, warm_s: float) -> None:
        self.calls: list[int] = []
        self._cold_s, self._warm_s = cold_s, warm_s

    def __call__(self, calls: int) -> None:
        busy_s = calls * self._warm_s if self.calls else self._cold_s
        self.calls.append(calls)
        end = time.thread_time() + busy_s
        while time.thread_time() < end:
            pass


@pytest.fixture(scope="module")
def clock() -> WallClock:
    return WallClock(Calibration((0,), 0.08))


@pytest.mark.parametrize("calls", [1, 4])
def test_the_call_that_fills_the_caches_is_not_counted(clock: WallClock, calls: int) -> None:
    program = Program(cold_s=0.02, warm_s=0.002)
    seconds, _ = clock.sample(Callee(program), calls)
    assert program.calls == [1, calls]
    assert seconds < 0.01


def test_a_run_of_several_dispatches_counts_as_so_many_calls(clock: WallClock) -> None:
    program = Program(cold_s=0.02, warm_s=0.008)
    seconds, _ = clock.sample(Callee(program, dispatches=8), 17)
    assert program.calls == [1, 3]
    assert 0.001 <= seconds < 0.002


def test_a_long_call_is_timed_at_once(clock: WallClock) -> None:
    program = Program(cold_s=1.2 * LONG_CALL_S, warm_s=0.0)
    seconds, _ = clock.sample(Callee(program), 1)
    assert program.calls == [1]
    assert seconds >= LONG_CALL_S
