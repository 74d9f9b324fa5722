"""NVIDIA GPUs: by their architecture, as NVIDIA's driver describes them, or as a file does."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from mlir_sched.errors import UserError
from mlir_sched.targets.devices import read_json
from mlir_sched.targets.target import GpuLimits, GpuResources

CUDA = "cuda"
"""IREE's driver of NVIDIA GPUs; its devices follow as ``cuda://GPU-<uuid>``."""


@dataclass(frozen=True)
class Architecture:
    """An architecture with the device that stands for it.

    Attributes:
        compiled_for: What ``--iree-cuda-target`` is given; PTX for one architecture also runs on later ones.
    """

    device: str
    compiled_for: str
    resources: GpuResources


_KIB = 1 << 10
ARCHITECTURES = {
    "sm_80": Architecture(
        "NVIDIA A100", "sm_80", GpuResources(108, 2048, 32, 65536, 164 * _KIB, 64, 1024, 1.41e9, 1.555e12)
    ),
    "sm_86": Architecture(
        "NVIDIA GeForce RTX 3090", "sm_86", GpuResources(82, 1536, 16, 65536, 100 * _KIB, 128, 256, 1.695e9, 0.936e12)
    ),
    "sm_89": Architecture(
        "NVIDIA GeForce RTX 4090", "sm_89", GpuResources(128, 1536, 24, 65536, 100 * _KIB, 128, 256, 2.52e9, 1.008e12)
    ),
    "sm_90": Architecture(
        "NVIDIA H100", "sm_80", GpuResources(132, 2048, 32, 65536, 228 * _KIB, 128, 2048, 1.83e9, 3.35e12)
    ),
}
"""Architectures by the assembler's name. IREE 3.13 has no target for sm_90 ("missing GPU target").

Sources: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; NVIDIA's whitepapers on the
architectures GA100, GA102, AD102 and GH100. The rates are those of the largest clocks, without sparsity."""


@dataclass(frozen=True)
class CudaDevice:
    """A device as NVIDIA's driver describes it (``cuda_driver.py``).

    Attributes:
        name: E.g. ``NVIDIA H100 80GB HBM3``.
        driver: The newest version of CUDA that the driver knows, e.g. ``13.0``.
        uuid: Device UUID, hexadecimal.
        capability: Compute capability, e.g. (9, 0).
        known: Its architecture, or the newest earlier one that is known; None for a device older than all of these.
        resources: What it runs workgroups with: what the driver tells, and the operations per clock of ``known``; None
            without it.
    """

    name: str
    driver: str
    uuid: str
    capability: tuple[int, int]
    limits: GpuLimits
    known: Architecture | None
    resources: GpuResources | None

    @staticmethod
    def from_json(data: dict[str, Any]) -> CudaDevice:
        """Return the device that ``cuda_driver.py`` printed."""
        limits = GpuLimits(
            subgroup_size=data["subgroup_size"],
            workgroup_threads=data["workgroup_threads"],
            workgroup_size=(data["workgroup_x"], data["workgroup_y"], data["workgroup_z"]),
            workgroup_counts=(data["count_x"], data["count_y"], data["count_z"]),
            shared_memory_bytes=data["shared_memory_bytes"],
        )
        capability = data["major"], data["minor"]
        known = newest_known(capability)
        resources = None if known is None else _resources(known, data)
        return CudaDevice(data["name"], data["driver"], data["uuid"], capability, limits, known, resources)

    @property
    def architecture(self) -> str:
        """Its architecture as the assembler names it, e.g. ``sm_90``."""
        return "sm_{}{}".format(*self.capability)

    @property
    def uri(self) -> str:
        """What IREE calls it. Source: ``iree_hal_cuda_populate_device_info`` of IREE's ``cuda_driver.c``."""
        digits = self.uuid
        parts = digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]
        return f"{CUDA}://GPU-{'-'.join(parts)}"


def read_description(path: Path) -> tuple[str, Architecture]:
    """Return the architecture's name and the device that a JSON file describes.

    The file holds one object: ``architecture``, a key of :data:`ARCHITECTURES`; ``device``, a name; and any fields of
    :class:`~mlir_sched.targets.target.GpuResources` in which the device differs from the architecture's own.

    Raises:
        UserError: The file cannot be read, or is no such object.
    """
    data = read_json(path)
    kinds = {field.name: field.type for field in fields(GpuResources)}
    if not isinstance(data, dict) or not isinstance(data.get("architecture"), str):
        raise UserError(f"{path}: describe the device by an object with its architecture, one of {_known()}")
    if unknown := sorted(data.keys() - kinds.keys() - {"architecture", "device"}):
        raise UserError(
            f"{path}: unknown field {unknown[0]!r}; known are architecture, device, {', '.join(sorted(kinds))}"
        )
    changed = dict[str, Any]()
    for name in sorted(kinds.keys() & data.keys()):
        value, whole = data[name], kinds[name] is int
        if not isinstance(value, int if whole else int | float) or not 0 < value < math.inf:
            number = "whole number" if whole else "number"
            raise UserError(f"{path}: {name} must be a {number} above 0, but is {value!r}")
        changed[name] = value if whole else float(value)
    known = architecture(data["architecture"])
    described = str(data.get("device", known.device))
    return data["architecture"], replace(known, device=described, resources=replace(known.resources, **changed))


def architecture(name: str) -> Architecture:
    """Return the architecture with a name.

    Raises:
        UserError: No architecture that is known has the name.
    """
    if name not in ARCHITECTURES:
        raise UserError(f"unknown CUDA architecture {name!r}; known are {_known()}")
    return ARCHITECTURES[name]


def newest_known(capability: tuple[int, int]) -> Architecture | None:
    """Return the newest known architecture up to a compute capability, as PTX for it also runs there; None for none."""
    known = {_capability(name): kind for name, kind in ARCHITECTURES.items()}
    return known[max(fitting)] if (fitting := [each for each in known if each <= capability]) else None


def _resources(known: Architecture, data: dict[str, Any]) -> GpuResources:
    """Return what a device of a known architecture runs workgroups with, by what ``cuda_driver.py`` printed."""
    return replace(
        known.resources,
        multiprocessors=data["multiprocessors"],
        threads=data["multiprocessor_threads"],
        workgroups=data["multiprocessor_workgroups"],
        registers=data["multiprocessor_registers"],
        shared_memory_bytes=data["multiprocessor_shared_memory_bytes"],
        clock_hz=1e3 * data["clock_khz"],
        memory_bytes_per_s=2e3 * data["memory_clock_khz"] * data["memory_bus_bits"] / 8,  # two transfers per clock
    )


def _capability(name: str) -> tuple[int, int]:
    """Return the compute capability of an architecture: (9, 0) for ``sm_90``."""
    digits = name.removeprefix("sm_")
    return int(digits[:-1]), int(digits[-1])


def _known() -> str:
    return ", ".join(ARCHITECTURES)
