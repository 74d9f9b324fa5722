"""What doctor says about the machine."""

import json
import os

import pytest
from command_line import Cli

from mlir_sched import doctor


def test_doctor_says_that_one_core_shows_no_races(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, expected in ((1, True), (2, False)):
        monkeypatch.setattr(doctor, "available_cpus", lambda cores=cores: cores)
        found = next(finding for finding in doctor._machine() if finding.name == "cores")
        assert ("races between threads are not looked for" in found.advice) is expected


def test_doctor_shows_versions_target_and_noise(cli: Cli) -> None:
    ended = cli("doctor", "--json")
    assert ended.code == 0
    found = {finding["name"]: finding for finding in json.loads(ended.out)["findings"]}
    expected = {"iree compiler", "iree runtime", "llvm-cpu: processor", "llvm-cpu: CPU features used", "cores"}
    assert expected | {"timing noise", "memory"} <= set(found)
    assert any(name.startswith(("vulkan: ", "target vulkan")) for name in found)
    assert str(len(os.sched_getaffinity(0))) in found["cores"]["value"]
