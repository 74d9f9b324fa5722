"""Vulkan devices as their drivers describe them, and which of IREE's targets each runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlir_sched.errors import UserError
from mlir_sched.targets.devices import read_json
from mlir_sched.targets.resolved import xyz
from mlir_sched.targets.target import GpuLimits, MatrixUnit

NVIDIA, AMD = 0x10DE, 0x1002
"""Vendors' numbers in Vulkan: those of the PCI SIG."""
_CPU_DEVICE = 4  # VK_PHYSICAL_DEVICE_TYPE_CPU
FEATURES = frozenset(
    {
        *("vulkan_1_3", "float64", "int64", "int16", "float16", "int8", "storage_16_bit", "storage_8_bit"),
        *("subgroup_arithmetic", "subgroup_shuffle"),
    }
)
"""What a driver has to have for each of :data:`KNOWN_TARGETS`, whose code may use all of it. Source: the capabilities
that IREE's ``KnownTargets.cpp`` gives them; their SPIR-V is of version 1.6, which is part of Vulkan 1.3."""


@dataclass(frozen=True)
class VulkanDevice:
    """A physical device as its driver describes it (``vulkan_driver.py``).

    Attributes:
        name: E.g. ``llvmpipe (LLVM 15.0.6, 256 bits)``.
        driver: Driver with its version, e.g. ``llvmpipe Mesa 22.3.6``.
        uuid: Device UUID, hexadecimal.
        is_cpu: Whether the device is a software implementation.
        least_subgroup: The smallest subgroup that a program may ask for.
        features: Names of what the driver has (``vulkan_driver.py``).
    """

    name: str
    driver: str
    uuid: str
    is_cpu: bool
    limits: GpuLimits
    vendor: int = 0
    least_subgroup: int = 0
    features: frozenset[str] = frozenset()

    @staticmethod
    def from_json(data: dict[str, Any]) -> VulkanDevice:
        """Return the device that ``vulkan_driver.py`` printed."""
        limits = GpuLimits(
            subgroup_size=data["subgroup_size"],
            workgroup_threads=data["workgroup_threads"],
            workgroup_size=xyz(data["workgroup_size"]),
            workgroup_counts=xyz(data["workgroup_counts"]),
            shared_memory_bytes=data["shared_memory_bytes"],
            cooperative_matrices=frozenset(MatrixUnit(**each) for each in data["cooperative_matrices"]),
        )
        return VulkanDevice(
            name=data["name"],
            driver=data["driver"],
            uuid=data["uuid"],
            is_cpu=data["type"] == _CPU_DEVICE,
            limits=limits,
            vendor=data["vendor"],
            least_subgroup=data["least_subgroup"] or data["subgroup_size"],
            features=frozenset(name for name, there in data["features"].items() if there),
        )


@dataclass(frozen=True)
class KnownTarget:
    """A target of IREE that fits many devices of a vendor.

    Attributes:
        name: What ``--iree-vulkan-target`` is given.
        subgroup: The smallest subgroup that its code may ask for.
        workgroup_threads, shared_memory_bytes: What its code may take.
        features: What its code may use.
    """

    name: str
    vendor: int
    subgroup: int
    workgroup_threads: int
    shared_memory_bytes: int
    features: frozenset[str] = FEATURES

    def fits(self, device: VulkanDevice) -> bool:
        """Say whether a device of the vendor has all that the target's code may use."""
        limits = device.limits
        return (
            device.vendor == self.vendor
            and device.least_subgroup <= self.subgroup
            and limits.workgroup_threads >= self.workgroup_threads
            and limits.shared_memory_bytes >= self.shared_memory_bytes
            and device.features >= self.features
        )


KNOWN_TARGETS = (
    KnownTarget("pascal", NVIDIA, 32, 1024, 48 << 10),
    KnownTarget("rdna2", AMD, 32, 1024, 64 << 10, FEATURES | {"dot_product"}),
)
"""Targets without cooperative matrices, which IREE would use wherever a target has them, whatever the driver has.
Source of the limits: IREE's ``KnownTargets.cpp``."""
SOFTWARE = "llvmpipe"
"""Mesa's software device, which IREE knows by this name."""


@dataclass(frozen=True)
class Description:
    """What a user says of a device.

    Attributes:
        device: A part of its name; empty for any.
        iree_target: What ``--iree-vulkan-target`` is given.
    """

    device: str
    iree_target: str


def iree_target(device: VulkanDevice) -> str | None:
    """Return what ``--iree-vulkan-target`` is given for a device; None for the default, for any Vulkan 1.3 device."""
    if device.name.startswith(SOFTWARE):
        return SOFTWARE
    return next((known.name for known in KNOWN_TARGETS if known.fits(device)), None)


def read_description(path: Path) -> Description:
    """Return what a JSON file says of a device: an object with ``iree_target`` and, where wanted, ``device``.

    Raises:
        UserError: The file cannot be read, or is no such object.
    """
    data = read_json(path)
    if (
        not isinstance(data, dict)
        or not isinstance(data.get("iree_target"), str)
        or data.keys() - {"iree_target", "device"}
    ):
        raise UserError(
            f"{path}: describe the device by an object with iree_target, a name that iree-compile --iree-vulkan-target "
            "takes, and if there are several devices, device, a part of its name"
        )
    return Description(str(data.get("device", "")), data["iree_target"])
