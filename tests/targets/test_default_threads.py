"""On how many threads programs run where the user names no number."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from vulkan import require_vulkan

from mlir_sched.errors import UserError
from mlir_sched.targets import TARGETS, detect_target, machine
from mlir_sched.targets.machine import local_task_workers, runtime_tool

ALLOWED = sorted(os.sched_getaffinity(0))
MOST = 64
"""Most workers that IREE starts by itself (``--task_topology_max_group_count``)."""


@pytest.fixture
def one_core() -> Iterator[None]:
    """Have this thread and its children use one core."""
    os.sched_setaffinity(0, ALLOWED[-1:])
    yield
    os.sched_setaffinity(0, ALLOWED)


def physical_cores() -> int:
    """Return the number of physical cores that this process may use, by what Linux says of hardware threads."""
    lists = (Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list") for core in ALLOWED)
    return len({path.read_text() for path in lists})


@pytest.mark.promise
@pytest.mark.skipif(Path("/sys/devices/system/node/node1").exists(), reason="IREE takes the cores of one NUMA node")
def test_the_default_is_one_thread_per_physical_core() -> None:
    assert detect_target("llvm-cpu", None).cores == local_task_workers() == min(MOST, physical_cores())


@pytest.mark.promise
@pytest.mark.usefixtures("one_core")
def test_with_one_core_the_default_is_one_thread() -> None:
    assert detect_target("llvm-cpu", None).cores == 1


@pytest.mark.promise
def test_a_number_that_is_given_is_taken() -> None:
    assert detect_target("llvm-cpu", len(ALLOWED)).cores == len(ALLOWED)


@pytest.mark.promise
def test_a_vulkan_device_takes_the_default_as_no_number_of_threads() -> None:
    require_vulkan()
    assert detect_target("vulkan", None).cores == 1


def test_devices_have_their_own_threads() -> None:
    assert {name: kind.threads() for name, kind in TARGETS.items() if name != "llvm-cpu"} == {
        "vulkan": 1,
        "cuda": 1,
        "rocm": 1,
    }


@pytest.mark.promise
def test_where_iree_does_not_tell_the_number_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexit 0\n")
    silent.chmod(0o755)
    monkeypatch.setattr(machine, "runtime_tool", lambda name: str(silent))
    with pytest.raises(UserError, match="give the number of threads"):
        detect_target("llvm-cpu", None)


def test_a_tool_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Path(runtime_tool("iree-run-module")).is_file()
    for package in ("email", "no_such_package"):
        monkeypatch.setattr(machine, "_PACKAGE", package)
        with pytest.raises(UserError, match="iree-base-runtime has no iree-run-module; install iree-base-runtime"):
            runtime_tool("iree-run-module")
