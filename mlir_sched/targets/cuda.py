"""An NVIDIA GPU through IREE's cuda backend: a device that need not be there, whose programs are compiled and not run.

IREE 3.13 records no times of CUDA dispatches, and there is no other clock for them here yet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlir_sched.compiler.version import compiler_version
from mlir_sched.errors import UserError
from mlir_sched.targets.kind import DEFAULT, TargetKind
from mlir_sched.targets.resolved import gpu_limits, resolve
from mlir_sched.targets.target import GpuResources, Target

NAME = "cuda"
DEVICE_FLAG = "--iree-hal-target-device=cuda"
VECTOR_BYTES = 16
"""A thread's widest load or store: ``ld.global.v4.b32``."""
VECTOR_REGISTERS = 43
"""Registers of a thread in units of VECTOR_BYTES: three quarters of them hold 128 accumulators, with which kernels take
up to 255 registers, the most of a thread, and are not spilled."""
DEFAULT_ARCHITECTURE = "sm_80"
MOST_THREADS_Z = 64
"""Most threads of a workgroup along z, where IREE allows 1024. Source: CUDA C++ Programming Guide."""


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


def detect(threads: int, device: str = "") -> Target:
    """Refuse to describe a device of this machine.

    Raises:
        UserError: Always; the message says what can be done without a device.
    """
    del threads, device
    raise UserError(
        "programs for the target cuda cannot be timed yet, with or without a device; "
        "--check-only compiles and assembles candidates and ranks them by a model of the device"
    )


def absent(device: str) -> Target:
    """Return an NVIDIA GPU that need not be there as a target.

    Args:
        device: A key of :data:`ARCHITECTURES`; :data:`DEFAULT_ARCHITECTURE` when empty.

    Raises:
        UserError: The architecture is not known, or IREE cannot resolve the target.
    """
    name = device or DEFAULT_ARCHITECTURE
    known = ARCHITECTURES.get(name)
    if known is None:
        raise UserError(f"unknown CUDA architecture {name!r}; known are {', '.join(ARCHITECTURES)}")
    flags = (DEVICE_FLAG, f"--iree-cuda-target={known.compiled_for}")
    resolved = resolve(NAME, flags)
    limits = gpu_limits(resolved)
    x, y, z = limits.workgroup_size
    return Target(
        name=NAME,
        backend="cuda",
        driver=NAME,
        flags=flags,
        description=f"{resolved} on {known.device}",
        compiler=compiler_version(),
        processor=f"{known.device} ({name})",
        cores=1,
        vector_bytes=VECTOR_BYTES,
        vector_registers=VECTOR_REGISTERS,
        gpu=replace(limits, workgroup_size=(x, y, min(z, MOST_THREADS_Z))),
        gpu_resources=known.resources,
        assembler=name,
        machine=(("device", f"{known.device}, not there"),),
    )


def facts(target: Target) -> tuple[tuple[str, str], ...]:
    """Return the properties that decide the code of a CUDA target, as (name, value)."""
    return (("processor", target.processor),)


KIND = TargetKind(detect, {DEFAULT: (), "O3": ("--iree-opt-level=O3",)}, facts, absent=absent)
