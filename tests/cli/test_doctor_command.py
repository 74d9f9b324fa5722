"""What doctor shows."""

import json
import os

import pytest
from command_line import Cli

from mlir_sched.targets.machine import local_task_workers

pytestmark = pytest.mark.promise


def test_doctor_shows_versions_target_and_noise(cli: Cli) -> None:
    ended = cli("doctor", "--json")
    assert ended.code == 0
    found = {finding["name"]: finding for finding in json.loads(ended.out)["findings"]}
    expected = {"iree compiler", "iree runtime", "llvm-cpu: processor", "llvm-cpu: CPU features used", "cores"}
    assert expected | {"timing noise", "memory"} <= set(found)
    assert any(name.startswith(("vulkan: ", "target vulkan")) for name in found)
    assert str(len(os.sched_getaffinity(0))) in found["cores"]["value"]
    assert found["threads"]["value"] == f"tune uses {local_task_workers()} by default"
