"""The drivers of the known targets, and the clocks that time their programs."""

from __future__ import annotations

import pytest

from mlir_sched.targets import TARGETS, absent_target, detect_target
from mlir_sched.targets.clock import CALLS, EVENTS, WALL
from mlir_sched.targets.target import LOCAL, Driver, in_calling_thread

ABSENT = {"cuda": Driver("cuda", CALLS), "vulkan": Driver("vulkan", EVENTS), "rocm": Driver("hip", EVENTS)}


@pytest.mark.promise
@pytest.mark.parametrize(("name", "driver"), ABSENT.items())
def test_the_driver_of_a_device_has_the_clock_of_its_kind(name: str, driver: Driver) -> None:
    target = absent_target(name)
    assert target.driver == driver
    assert target.clock == driver.clock


@pytest.mark.promise
def test_programs_for_the_cpu_run_on_the_host_by_its_clock() -> None:
    target = detect_target("llvm-cpu", 1)
    assert target.driver == LOCAL == Driver("local", WALL, on_host=True)
    assert TARGETS.keys() == {"llvm-cpu", *ABSENT}


@pytest.mark.parametrize(
    ("driver", "threads", "device"),
    [
        (LOCAL, 1, "local-sync"),
        (LOCAL, 2, "local-task"),
        (Driver("vulkan://GPU-00", EVENTS), 1, "vulkan://GPU-00"),
        (Driver("cuda://GPU-00", CALLS), 1, "cuda://GPU-00"),
    ],
)
def test_a_driver_names_the_device_that_runs_its_programs(driver: Driver, threads: int, device: str) -> None:
    assert driver.device(threads) == device
    assert in_calling_thread(device) is (driver.on_host and threads == 1)
