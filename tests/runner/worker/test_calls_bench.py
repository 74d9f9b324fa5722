"""Times on a device by the host's clock: what a call costs besides its dispatches is not counted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mlir_sched.runner.worker.benches import calls_bench
from mlir_sched.runner.worker.benches.calls_bench import DISTURBED, DeviceCallClock, DeviceCalls

CALL_S, DISPATCH_S, LENGTH = 30e-6, 5e-6, 32


class FakeDevice:
    """A device on which every call takes :data:`CALL_S` besides its dispatches; it moves the clock of the tests."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.delay_s = 0.0

    def perf_counter(self) -> float:
        return self.now_s

    def program(self, dispatches: int, dispatch_s: float = DISPATCH_S) -> Callable[[int], None]:
        """Return a function that calls a program of so many dispatches a given number of times."""

        def run(calls: int) -> None:
            self.now_s += calls * (CALL_S + dispatches * dispatch_s + self.delay_s)

        return run


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    fake = FakeDevice()
    monkeypatch.setattr(calls_bench, "time", fake)
    return fake


@pytest.mark.parametrize("calls", [1, LENGTH, 1000])
def test_a_chain_tells_the_time_of_a_dispatch_alone(calls: int, device: FakeDevice) -> None:
    chained = DeviceCalls(device.program(1), device.program(LENGTH), LENGTH)
    assert DeviceCallClock().seconds(chained, calls) == pytest.approx(DISPATCH_S)


def test_without_a_chain_the_whole_call_counts(device: FakeDevice) -> None:
    assert DeviceCallClock().seconds(DeviceCalls(device.program(3)), 10) == pytest.approx(CALL_S + 3 * DISPATCH_S)


def test_a_disturbed_single_call_makes_no_dispatch_free(device: FakeDevice) -> None:
    slow = device.program(1, dispatch_s=1.0)
    chained = DeviceCalls(slow, device.program(LENGTH), LENGTH)
    assert DeviceCallClock().seconds(chained, 1) == pytest.approx(CALL_S / LENGTH + DISPATCH_S)


def test_a_sample_far_from_the_best_is_disturbed(device: FakeDevice) -> None:
    clock, program = DeviceCallClock(), DeviceCalls(device.program(1))
    best_s, alone = clock.sample(program, 10)
    assert alone
    for factor, expected in ((0.99 * DISTURBED, True), (1.01 * DISTURBED, False)):
        device.delay_s = (factor - 1) * best_s
        assert clock.sample(program, 10)[1] is expected
