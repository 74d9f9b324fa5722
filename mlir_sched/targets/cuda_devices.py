"""NVIDIA GPUs by their architecture, or described by a file: what a model of their time has to know."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

from mlir_sched.errors import UserError
from mlir_sched.targets.description_file import read_json
from mlir_sched.targets.target import GpuResources


@dataclass(frozen=True)
class Architecture:
    """An architecture with the device that stands for it.

    Attributes:
        device: Name of the device.
        compiled_for: What ``--iree-cuda-target`` is given; PTX for one architecture also runs on later ones.
        resources: The device's resources.
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


def read_description(path: Path) -> tuple[str, Architecture]:
    """Return the architecture's name and the device that a JSON file describes.

    The file holds one object: ``architecture``, a key of :data:`ARCHITECTURES`; ``device``, a name; and any fields of
    :class:`~mlir_sched.targets.target.GpuResources` in which the device differs from the architecture's own.

    Raises:
        UserError: The file cannot be read, or is no such object.
    """
    data = read_json(path)
    numbers = {field.name for field in fields(GpuResources)}
    if not isinstance(data, dict) or not isinstance(data.get("architecture"), str):
        raise UserError(f"{path}: describe the device by an object with its architecture, one of {_known()}")
    if unknown := sorted(data.keys() - numbers - {"architecture", "device"}):
        raise UserError(
            f"{path}: unknown field {unknown[0]!r}; known are architecture, device, {', '.join(sorted(numbers))}"
        )
    changed = {name: data[name] for name in numbers & data.keys()}
    if wrong := [name for name, value in changed.items() if not isinstance(value, int | float) or value <= 0]:
        raise UserError(f"{path}: {wrong[0]} must be a number above 0, but is {changed[wrong[0]]!r}")
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


def _known() -> str:
    return ", ".join(ARCHITECTURES)
