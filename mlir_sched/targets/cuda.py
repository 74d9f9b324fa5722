"""An NVIDIA GPU through IREE's cuda backend: this machine's, or a device that need not be there.

IREE 3.13 records no times of CUDA dispatches (``iree_hal_cuda_device_profiling_begin`` of its ``cuda_device.c`` is "not
implemented"); a device of this machine is timed by calls (``runner/worker/benches/calls_bench.py``).
"""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

from mlir_sched.compiler.version import compiler_version
from mlir_sched.errors import UserError
from mlir_sched.processes.limits import ChildError
from mlir_sched.targets.clock import CALLS
from mlir_sched.targets.devices import FILE, ask_driver
from mlir_sched.targets.devices.cuda_devices import ARCHITECTURES, CUDA, CudaDevice, architecture, read_description
from mlir_sched.targets.kind import DEFAULT, TargetKind, refuse_threads
from mlir_sched.targets.machine import runtime_version
from mlir_sched.targets.resolved import gpu_limits, resolve, smaller_limits
from mlir_sched.targets.target import Driver, Target

NAME = CUDA
DEVICE_FLAG = "--iree-hal-target-device=cuda"
VECTOR_BYTES = 16
"""A thread's widest load or store: ``ld.global.v4.b32``."""
VECTOR_REGISTERS = 43
"""Registers of a thread in units of VECTOR_BYTES: three quarters of them hold 128 accumulators, with which kernels take
up to 255 registers, the most of a thread, and are not spilled."""
DEFAULT_ARCHITECTURE = "sm_80"
MOST_THREADS_Z = 64
"""Most threads of a workgroup along z, where IREE allows 1024. Source: CUDA C++ Programming Guide."""
WITHOUT = "--check-only needs no GPU: it compiles and assembles candidates and ranks them by a model of a device"
"""What a user can do on a machine without a GPU."""
_target = partial(
    Target, name=NAME, backend="cuda", cores=1, vector_bytes=VECTOR_BYTES, vector_registers=VECTOR_REGISTERS
)


def detect(threads: int, device: str = "") -> Target:
    """Return an NVIDIA GPU of this machine as a target.

    Args:
        threads: 1, because the device decides how many there are.
        device: A part of the device's name in any case, or its architecture (``sm_90``); the first device that has it
            is taken. When empty, the first device is taken.

    Raises:
        UserError: The machine has no driver or no such device, ``threads`` is not 1, or IREE has no target for it.
    """
    refuse_threads(NAME, threads)
    if device.endswith(FILE):
        raise UserError(
            f"{device} describes a GPU that need not be there, for --check-only; without, the driver tells all"
        )
    found = devices()
    named = [each for each in found if device.lower() in each.name.lower() or device == each.architecture]
    if not named:
        there = ", ".join(f"{each.name} ({each.architecture})" for each in found) or "none"
        raise UserError(f"no NVIDIA GPU {device!r} is here ({there}); {WITHOUT}")
    chosen = named[0]
    if chosen.known is None:
        oldest = min(ARCHITECTURES)
        raise UserError(f"{chosen.name} is {chosen.architecture}; the oldest supported GPUs are {oldest}; {WITHOUT}")
    flags = (DEVICE_FLAG, f"--iree-cuda-target={chosen.known.compiled_for}")
    return describe(resolve(NAME, flags), chosen, flags)


def describe(resolved: str, device: CudaDevice, flags: tuple[str, ...]) -> Target:
    """Return the target from the text of its ``#hal.executable.target`` and its device.

    Every limit is the smaller of IREE's limit for generated code and the driver's limit.
    """
    return _target(
        driver=Driver(device.uri, CALLS),
        flags=flags,
        description=f"{resolved} on {device.name}, CUDA {device.driver}",
        compiler=compiler_version(),
        processor=f"{device.name} ({device.architecture})",
        gpu=smaller_limits(gpu_limits(resolved), device.limits),
        gpu_resources=device.resources,
        assembler=device.architecture,
        machine=(("device", device.name), ("runtime", runtime_version())),
    )


def devices() -> list[CudaDevice]:
    """Return the NVIDIA GPUs of this machine, in the driver's order.

    Raises:
        UserError: There is no driver, or it cannot be used; the message says why.
    """
    try:
        done = ask_driver("mlir_sched.targets.devices.cuda_driver")
    except ChildError as error:
        raise UserError(f"NVIDIA's driver gives no answer: {error}; {WITHOUT}") from None
    if done.code != 0:
        said = done.errors.decode(errors="replace").strip().splitlines()
        why = said[-1] if said else "NVIDIA's driver crashes"
        raise UserError(f"{why}; {WITHOUT}")
    return [CudaDevice.from_json(data) for data in json.loads(done.output)]


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
    return _target(
        driver=Driver(NAME, CALLS),
        flags=flags,
        description=f"{resolved} on {known.device}",
        compiler=compiler_version(),
        processor=f"{known.device} ({name})",
        gpu=replace(limits, workgroup_size=(x, y, min(z, MOST_THREADS_Z))),
        gpu_resources=known.resources,
        assembler=name,
        machine=(("device", f"{known.device}, not there"),),
    )


def facts(target: Target) -> tuple[tuple[str, str], ...]:
    """Return the properties that decide the code of a CUDA target, as (name, value)."""
    assert target.gpu is not None
    gpu = target.gpu
    size = "x".join(map(str, gpu.workgroup_size))
    return (
        ("processor", target.processor),
        ("compiled with", target.flags[-1]),
        ("workgroups", f"{gpu.workgroup_threads} threads, {size} at most; subgroups of {gpu.subgroup_size}"),
        ("shared memory", f"{gpu.shared_memory_bytes >> 10} KiB"),
        (
            "clock",
            f"the host's, around calls of 1 and {target.chain_length} dispatches: IREE records none on this device",
        ),
    )


KIND = TargetKind(detect, {DEFAULT: (), "O3": ("--iree-opt-level=O3",)}, facts, rewrites="gpu", absent=absent)
