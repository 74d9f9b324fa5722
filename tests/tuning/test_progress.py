"""The seconds of a run by phase."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mlir_sched.tuning.progress import Phase, PhaseClock


def test_seconds_count_for_the_phase_that_was_entered_last(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([13.0, 14.0, 20.0, 25.0, 31.0])
    monkeypatch.setattr("mlir_sched.tuning.progress.time", SimpleNamespace(monotonic=lambda: next(now)))
    clock = PhaseClock(10.0)
    for phase in (Phase.SEARCH, Phase.UNTUNED, Phase.SEARCH, Phase.EMISSION):
        clock.enter(phase)
    assert clock.seconds() == {"variants": 3.0, "untuned dispatches": 6.0, "search": 6.0, "emission": 6.0}
