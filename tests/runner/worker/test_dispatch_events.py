"""Times of dispatches from a device's timestamps, with fakes in place of IREE's programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from measured_programs import fake_program

from mlir_sched.errors import FailureClass
from mlir_sched.runner import Program
from mlir_sched.runner.benchmark_module import ProgramFiles
from mlir_sched.runner.protocol import EventsSetup, RequestFailed
from mlir_sched.runner.worker.dispatch_events import DispatchClock, durations_of, seconds_per_call


def event(number: int, key: str = "a", duration_ns: int = 1000, **changes: Any) -> str:
    row = {"type": "dispatch_event", "event_id": number, "key": key, "duration_ns": duration_ns, "valid": True}
    return json.dumps(row | changes)


def listing(*lines: str) -> bytes:
    return "\n".join((*lines, json.dumps({"type": "dispatch_summary"}))).encode()


def test_events_are_durations_by_call_and_dispatch_in_order() -> None:
    rows = [event(4, "b", 40), event(1, "a", 10), event(2, "b", 20), event(3, "a", 30)]
    assert durations_of(listing(*rows), 2) == pytest.approx(np.array([[10e-9, 20e-9], [30e-9, 40e-9]]))


def test_time_of_a_call_is_the_low_percentile_of_each_dispatch_without_the_first_call() -> None:
    durations = np.ones((12, 2))
    durations[0] = 0.001
    durations[1:, 1] = np.arange(10, 21)
    assert seconds_per_call(durations) == pytest.approx(1 + 11)


@pytest.mark.parametrize(
    ("rows", "explanation"),
    [
        ([], "no timestamps"),
        ([event(1), event(2), event(3)], "2 equal calls made 3 dispatches"),
        ([event(1), event(2, valid=False)], "not valid"),
        ([event(1), event(2, duration_ns=0)], "not valid"),
        ([event(1, "a"), event(2, "b")], "equal calls made different dispatches: a, b"),
    ],
)
def test_unusable_events_are_a_run_error(rows: list[str], explanation: str) -> None:
    with pytest.raises(RequestFailed, match=explanation) as failed:
        durations_of(listing(*rows), 2)
    assert failed.value.failure.kind == FailureClass.RUN_ERROR


@pytest.mark.promise
@pytest.mark.parametrize(
    ("body", "kind", "explanation"),
    [
        ("kill -SEGV $$", FailureClass.RUN_CRASH, "SIGSEGV"),
        ("echo out of memory >&2; exit 1", FailureClass.RUN_ERROR, "exit code 1; it said: out of memory"),
    ],
)
def test_failing_benchmark_program_is_a_failure(
    tmp_path: Path, body: str, kind: FailureClass, explanation: str
) -> None:
    clock = DispatchClock(EventsSetup("vulkan", fake_program(tmp_path, body), "profile"), tmp_path / "record")
    with pytest.raises(RequestFailed) as failed:
        clock.sample(ProgramFiles(tmp_path / "module", Program(b"", "task", (), (), True), ()), 3)
    assert failed.value.failure.kind == kind
    assert explanation in failed.value.failure.message


@pytest.mark.parametrize(
    ("times", "sample", "alone", "used"),
    [
        ([2.0, 1.0, 1.1], 1.0, True, 3),  # nothing is known of it
        ([1.0, 1.0, 1.0, 2.0, 1.1], 1.1, True, 2),
        ([1.0, 1.0, 1.0, 2.0, 1.4, 1.5], 1.4, False, 3),
        ([500.0], 500.0, True, 1),  # long calls
        ([500.0, 700.0], 700.0, False, 1),
    ],
)
def test_sample_is_the_fastest_of_as_many_processes_as_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: list[float], sample: float, alone: bool, used: int
) -> None:
    """All times are in milliseconds."""
    clock = DispatchClock(EventsSetup("vulkan", "", ""), tmp_path)
    files = ProgramFiles(tmp_path, Program(b"", "task", (), (), True), ())
    left = iter(times)
    monkeypatch.setattr(clock, "_run", lambda tool, flags: b"")
    monkeypatch.setattr("mlir_sched.runner.worker.dispatch_events.durations_of", lambda text, calls: None)
    monkeypatch.setattr(
        "mlir_sched.runner.worker.dispatch_events.seconds_per_call", lambda durations: next(left) * 1e-3
    )
    for _ in range(len(times) - used):
        clock.seconds(files, 1)
    seconds, near_best = clock.sample(files, 1)
    assert seconds == pytest.approx(sample * 1e-3)
    assert near_best is alone
    assert not list(left)
