"""An NVIDIA GPU through IREE's cuda backend: a device that need not be there, whose programs are compiled and not run.

IREE 3.13 records no times of CUDA dispatches, and there is no other clock for them here yet.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mlir_sched.compiler.version import compiler_version
from mlir_sched.errors import UserError
from mlir_sched.targets.cuda_devices import FILE, architecture, read_description
from mlir_sched.targets.kind import DEFAULT, TargetKind
from mlir_sched.targets.resolved import gpu_limits, resolve
from mlir_sched.targets.target import Target

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
        device: A name of an architecture, or the path of a file that describes a device (``cuda_devices.py``);
            :data:`DEFAULT_ARCHITECTURE` when empty.

    Raises:
        UserError: The architecture is not known, the file is no description, or IREE cannot resolve the target.
    """
    if device.endswith(FILE):
        name, known = read_description(Path(device))
    else:
        name, known = device or DEFAULT_ARCHITECTURE, architecture(device or DEFAULT_ARCHITECTURE)
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
