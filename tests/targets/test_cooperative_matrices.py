"""The cooperative matrices of Vulkan devices: what drivers tell, what IREE makes, and what both have."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from mlir_sched.targets import absent_target, vulkan
from mlir_sched.targets.devices.vulkan_devices import VulkanDevice
from mlir_sched.targets.devices.vulkan_driver import cooperative_matrices
from mlir_sched.targets.target import GpuLimits, MatrixUnit

pytestmark = pytest.mark.promise

SOURCE = Path(__file__).with_name("vulkan_stand_in.c")
HALVES = MatrixUnit(16, 16, 16, "f16", "f16")
SUMS = MatrixUnit(16, 16, 16, "f16", "f32")
BYTES = MatrixUnit(16, 16, 16, "i8", "i32")
LIMITS = GpuLimits(32, 1024, (1024, 1024, 64), (65535, 65535, 65535), 64 << 10)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: install one, e.g. gcc")
def test_a_driver_tells_the_products_of_subgroups_with_one_type_of_inputs_and_one_of_sums(tmp_path: Path) -> None:
    library = tmp_path / "libvulkan.so"
    subprocess.run(["cc", "-shared", "-fPIC", SOURCE, "-o", library], check=True)
    loader = ctypes.CDLL(str(library))
    told, nothing = (cooperative_matrices(loader, ctypes.c_void_p(), ctypes.c_void_p(device)) for device in (1, 2))
    assert [MatrixUnit(**each) for each in told] == [SUMS, MatrixUnit(16, 8, 16, "f16", "f16"), BYTES]
    assert nothing == []


@pytest.mark.parametrize(
    ("name", "units"),
    [("rdna3", {HALVES, SUMS, BYTES}), ("ampere", {HALVES, SUMS}), ("pascal", set()), ("", set())],
)
def test_irees_targets_have_products_of_which_it_makes_code(name: str, units: set[MatrixUnit]) -> None:
    target = absent_target(f"vulkan:{name}" if name else "vulkan")
    assert target.gpu is not None
    assert target.gpu.cooperative_matrices == units


def test_a_target_has_what_iree_makes_and_the_driver_has() -> None:
    resolved = absent_target("vulkan:rdna3").description
    device = VulkanDevice("AMD Radeon", "RADV", "dd", False, LIMITS)
    for told in (frozenset({SUMS, MatrixUnit(8, 8, 16, "f16", "f16")}), frozenset[MatrixUnit]()):
        limited = replace(device, limits=replace(LIMITS, cooperative_matrices=told))
        target = vulkan.describe(resolved, limited, ())
        assert target.gpu is not None
        assert target.gpu.cooperative_matrices == told & {SUMS}
        assert dict(vulkan.facts(target))["cooperative matrices"] == ("16x16x16 f16 to f32" if told else "none")
