"""A Vulkan device through IREE's vulkan-spirv backend."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from mlir_sched.compiler.version import compiler_version
from mlir_sched.errors import UserError
from mlir_sched.processes.executable import run_program
from mlir_sched.processes.limits import ChildError, ChildLimits
from mlir_sched.processes.memory import child_memory_bytes
from mlir_sched.processes.python_child import python_command
from mlir_sched.targets.kind import DEFAULT, TargetKind
from mlir_sched.targets.machine import cpu_identity, runtime_version
from mlir_sched.targets.resolved import gpu_limits, resolve, smaller_limits, xyz
from mlir_sched.targets.target import GpuLimits, Target

NAME = "vulkan"
DEVICE_FLAG = "--iree-hal-target-device=vulkan"
KNOWN_DEVICES = {"llvmpipe": "llvmpipe"}
"""IREE's target name (``--iree-vulkan-target``) by the start of the device's name; other devices get IREE's default
target, which every Vulkan 1.3 device runs."""
INSTALL = "install one, e.g. Mesa's software driver: apt-get install mesa-vulkan-drivers libvulkan1"
VECTOR_BYTES = 16
"""A thread's widest load or store: ``vector<4xf32>`` (IREE, SPIRV/Utils.h, kMaxVectorNumBits)."""
VECTOR_REGISTERS = 43
"""Registers of a thread in units of VECTOR_BYTES. Three quarters of them hold 128 accumulators: above that number the
measured kernels spilled or took minutes to compile."""
_CPU_DEVICE = 4  # VK_PHYSICAL_DEVICE_TYPE_CPU
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class VulkanDevice:
    """A physical device as its driver describes it (``vulkan_driver.py``).

    Attributes:
        name: E.g. ``llvmpipe (LLVM 15.0.6, 256 bits)``.
        driver: Driver with its version, e.g. ``llvmpipe Mesa 22.3.6``.
        uuid: Device UUID, hexadecimal.
        is_cpu: Whether the device is a software implementation.
        limits: The driver's limits of a workgroup.
    """

    name: str
    driver: str
    uuid: str
    is_cpu: bool
    limits: GpuLimits

    @staticmethod
    def from_json(data: dict[str, Any]) -> VulkanDevice:
        """Return the device that ``vulkan_driver.py`` printed."""
        limits = GpuLimits(
            subgroup_size=data["subgroup_size"],
            workgroup_threads=data["workgroup_threads"],
            workgroup_size=xyz(data["workgroup_size"]),
            workgroup_counts=xyz(data["workgroup_counts"]),
            shared_memory_bytes=data["shared_memory_bytes"],
        )
        return VulkanDevice(data["name"], data["driver"], data["uuid"], data["type"] == _CPU_DEVICE, limits)


def detect(threads: int, device: str = "") -> Target:
    """Return a Vulkan device of this machine as a target.

    Args:
        threads: 1, because the device decides how many there are.
        device: A part of the device's name, in any case; the first device that has it is taken. When empty, the first
            device that is not a CPU is taken, or the first device if all are CPUs.

    Raises:
        UserError: The machine has no driver or no such device, ``threads`` is not 1, or IREE cannot resolve the target.
    """
    if threads != 1:
        raise UserError(f"the target {NAME} takes no number of threads: its device decides; got {threads}")
    found = devices()
    if not found:
        raise UserError(f"the target {NAME} needs a Vulkan driver with a device, and none is installed; {INSTALL}")
    named = [each for each in found if device.lower() in each.name.lower()]
    if not named:
        raise UserError(f"no Vulkan device is named {device!r}; there are {', '.join(each.name for each in found)}")
    chosen = next((each for each in named if device or not each.is_cpu), named[0])
    names = (known for start, known in KNOWN_DEVICES.items() if chosen.name.startswith(start))
    flags = (DEVICE_FLAG, *(f"--iree-vulkan-target={name}" for name in names))
    return describe(resolve(NAME, flags), chosen, flags)


def describe(resolved: str, device: VulkanDevice, flags: tuple[str, ...]) -> Target:
    """Return the target from the text of its ``#hal.executable.target`` and its device.

    Every limit is the smaller of IREE's limit for generated code and the driver's limit; the subgroup size is the
    driver's.
    """
    return Target(
        name=NAME,
        backend="vulkan-spirv",
        driver=f"vulkan://GPU-{device.uuid}",
        flags=flags,
        description=f"{resolved} on {device.name}, {device.driver}",
        compiler=compiler_version(),
        processor=device.name,
        cores=1,
        vector_bytes=VECTOR_BYTES,
        vector_registers=VECTOR_REGISTERS,
        gpu=smaller_limits(gpu_limits(resolved), device.limits),
        machine=(
            *((("cpu", cpu_identity()),) if device.is_cpu else ()),
            ("device", device.name),
            ("runtime", runtime_version()),
        ),
    )


def facts(target: Target) -> tuple[tuple[str, str], ...]:
    """Return the properties that decide the code of a Vulkan target, as (name, value)."""
    assert target.gpu is not None
    gpu = target.gpu
    size = "x".join(map(str, gpu.workgroup_size))
    return (
        ("processor", target.processor),
        ("Vulkan driver", target.description.rpartition(", ")[2]),
        ("workgroups", f"{gpu.workgroup_threads} threads, {size} at most; subgroups of {gpu.subgroup_size}"),
        ("shared memory", f"{gpu.shared_memory_bytes >> 10} KiB"),
    )


def devices() -> list[VulkanDevice]:
    """Return the Vulkan devices of this machine; empty when there is no loader, driver or device.

    The drivers are loaded in a separate process, so that a driver that crashes ends only that process.
    """
    command = python_command("mlir_sched.targets.vulkan_driver")
    try:
        done = run_program(command, ChildLimits(_TIMEOUT_S, child_memory_bytes()))
    except ChildError:
        return []
    return [VulkanDevice.from_json(data) for data in json.loads(done.output)] if done.code == 0 else []


KIND = TargetKind(detect, {DEFAULT: (), "O3": ("--iree-opt-level=O3",)}, facts)
