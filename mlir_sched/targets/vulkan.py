"""A Vulkan device through IREE's vulkan-spirv backend."""

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from mlir_sched.compiler.version import compiler_version
from mlir_sched.errors import UserError
from mlir_sched.processes.limits import ChildError
from mlir_sched.targets.clock import EVENTS
from mlir_sched.targets.devices import FILE, ask_driver
from mlir_sched.targets.devices.vulkan_devices import Description, VulkanDevice, iree_target, read_description
from mlir_sched.targets.kind import DEFAULT, TargetKind, refuse_threads
from mlir_sched.targets.machine import cpu_identity, runtime_version
from mlir_sched.targets.resolved import gpu_limits, resolve, smaller_limits
from mlir_sched.targets.target import Driver, GpuLimits, MatrixUnit, Target

NAME = "vulkan"
DEVICE_FLAG = "--iree-hal-target-device=vulkan"
TARGET_FLAG = "--iree-vulkan-target"
INSTALL = "install one, e.g. Mesa's software driver: apt-get install mesa-vulkan-drivers libvulkan1"
VECTOR_BYTES = 16
"""A thread's widest load or store: ``vector<4xf32>`` (IREE, SPIRV/Utils.h, kMaxVectorNumBits)."""
VECTOR_REGISTERS = 43
"""Registers of a thread in units of VECTOR_BYTES. Three quarters of them hold 128 accumulators: above that number the
measured kernels spilled or took minutes to compile."""
_target = partial(
    Target, name=NAME, backend="vulkan-spirv", cores=1, vector_bytes=VECTOR_BYTES, vector_registers=VECTOR_REGISTERS
)


def detect(threads: int, device: str = "") -> Target:
    """Return a Vulkan device of this machine as a target.

    Args:
        threads: 1, because the device decides how many there are.
        device: A part of the device's name, in any case; the first device that has it is taken. When empty, the first
            device that is not a CPU is taken, or the first device if all are CPUs. Or the path of a file that says
            what IREE's target for the device is (``vulkan_devices.py``).

    Raises:
        UserError: The machine has no driver or no such device, ``threads`` is not 1, or IREE cannot resolve the target.
    """
    refuse_threads(NAME, threads)
    said = read_description(Path(device)) if device.endswith(FILE) else Description(device, "")
    found = devices()
    if not found:
        raise UserError(f"the target {NAME} needs a Vulkan driver with a device, and none is installed; {INSTALL}")
    named = [each for each in found if said.device.lower() in each.name.lower()]
    if not named:
        raise UserError(
            f"no Vulkan device is named {said.device!r}; there are {', '.join(each.name for each in found)}"
        )
    chosen = next((each for each in named if said.device or not each.is_cpu), named[0])
    known = said.iree_target or iree_target(chosen)
    flags = (DEVICE_FLAG, f"{TARGET_FLAG}={known}") if known else (DEVICE_FLAG,)
    return describe(resolve(NAME, flags), chosen, flags)


def absent(device: str) -> Target:
    """Return a Vulkan device that need not be there as a target, with the limits that IREE knows of it.

    Args:
        device: What ``--iree-vulkan-target`` is given, or the path of a file that says so (``vulkan_devices.py``);
            IREE's default target when empty.

    Raises:
        UserError: IREE does not know the device.
    """
    known = read_description(Path(device)).iree_target if device.endswith(FILE) else device
    flags = (DEVICE_FLAG, f"{TARGET_FLAG}={known}") if known else (DEVICE_FLAG,)
    resolved = resolve(NAME, flags)
    return _target(
        driver=Driver(NAME, EVENTS),
        flags=flags,
        description=resolved,
        compiler=compiler_version(),
        processor=f"a Vulkan device ({known or 'any'})",
        gpu=compiler_limits(resolved),
        machine=(("device", f"{known or 'any'}, not there"),),
    )


def describe(resolved: str, device: VulkanDevice, flags: tuple[str, ...]) -> Target:
    """Return the target from the text of its ``#hal.executable.target`` and its device.

    Every limit is the smaller of IREE's limit for generated code and the driver's limit; the subgroup size is the
    driver's.
    """
    return _target(
        driver=Driver(f"vulkan://GPU-{device.uuid}", EVENTS),
        flags=flags,
        description=f"{resolved} on {device.name}, {device.driver}",
        compiler=compiler_version(),
        processor=device.name,
        gpu=smaller_limits(compiler_limits(resolved), device.limits),
        machine=(
            *((("cpu", cpu_identity()),) if device.is_cpu else ()),
            ("device", device.name),
            ("runtime", runtime_version()),
        ),
    )


def compiler_limits(resolved: str) -> GpuLimits:
    """Return the limits within which IREE generates code for a resolved target, with its cooperative matrices."""
    return replace(gpu_limits(resolved), cooperative_matrices=cooperative_matrices(resolved))


def cooperative_matrices(resolved: str) -> frozenset[MatrixUnit]:
    """Return the products that IREE computes with cooperative matrices for a resolved target.

    Their names are those of the instructions of a vendor, of which only extents and element types count here. IREE 3.13
    makes no SPIR-V of those of bf16, and of those whose results have fewer columns than rows.
    Source: IREE, ``KnownTargets.cpp``, ``setCooperativeMatrixConfig`` in ``SPIRV/KernelConfig.cpp``.
    """
    units = re.findall(r"<\w+?_([FI]\d+)_(\d+)x\2x(\d+)_([FI]\d+)>", resolved)
    return frozenset(
        MatrixUnit(int(extent), int(extent), int(reduction), inputs.lower(), result.lower())
        for result, extent, reduction, inputs in units
    )


def facts(target: Target) -> tuple[tuple[str, str], ...]:
    """Return the properties that decide the code of a Vulkan target, as (name, value)."""
    assert target.gpu is not None
    gpu = target.gpu
    size = "x".join(map(str, gpu.workgroup_size))
    named = [flag.partition("=")[2] for flag in target.flags if flag.startswith(TARGET_FLAG)]
    return (
        ("processor", target.processor),
        ("Vulkan driver", target.description.rpartition(", ")[2]),
        ("IREE's target", named[0] if named else "its default one, which every Vulkan 1.3 device runs"),
        ("workgroups", f"{gpu.workgroup_threads} threads, {size} at most; subgroups of {gpu.subgroup_size}"),
        ("shared memory", f"{gpu.shared_memory_bytes >> 10} KiB"),
        ("cooperative matrices", ", ".join(map(str, sorted(gpu.cooperative_matrices))) or "none"),
    )


def devices() -> list[VulkanDevice]:
    """Return the Vulkan devices of this machine; empty when there is no loader, driver or device."""
    try:
        done = ask_driver("mlir_sched.targets.devices.vulkan_driver")
    except ChildError:
        return []
    return [VulkanDevice.from_json(data) for data in json.loads(done.output)] if done.code == 0 else []


KIND = TargetKind(detect, {DEFAULT: (), "O3": ("--iree-opt-level=O3",)}, facts, rewrites="gpu", absent=absent)
