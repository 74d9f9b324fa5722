"""What doctor finds out about the machine."""

import pytest

from mlir_sched.preflight import doctor


def test_doctor_says_that_one_core_shows_no_races(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, expected in ((1, True), (2, False)):
        monkeypatch.setattr(doctor, "available_cpus", lambda cores=cores: cores)
        found = next(finding for finding in doctor._machine() if finding.name == "cores")
        assert ("races between threads are not looked for" in found.advice) is expected
