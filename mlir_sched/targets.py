"""The targets that can be tuned for, and how this machine looks as one of them.

A further target is one more entry of :data:`TARGETS`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mlir_sched.compiler.version import compiler_version
from mlir_sched.compiler.workers import WorkerCrashError, WorkerTimeoutError, run_isolated
from mlir_sched.errors import UserError
from mlir_sched.target import Target

_CPU_SYSFS = Path("/sys/devices/system/cpu")
_AVX512_REGISTERS, _AARCH64_REGISTERS, _OTHER_REGISTERS = 32, 32, 16


@dataclass(frozen=True)
class TargetKind:
    """A target by name.

    Attributes:
        backend: IREE's target backend.
        flags: Compiler flags that select it for this machine.
        describe: Makes the description from (kind, resolved executable target, number of threads).
    """

    backend: str
    flags: tuple[str, ...]
    describe: Callable[[TargetKind, str, int], Target]


def detect_target(name: str, threads: int) -> Target:
    """Return the description of this machine as a target.

    Args:
        name: A key of :data:`TARGETS`.
        threads: Cores that programs may use, from 1 to the number of CPUs of this process.

    Raises:
        UserError: The name or the number of threads is not possible here, or IREE cannot resolve the target.
    """
    if name not in TARGETS:
        raise UserError(f"unknown target {name!r}; known targets: {', '.join(sorted(TARGETS))}")
    available = available_cpus()
    if not 1 <= threads <= available:
        raise UserError(f"threads must be from 1 to {available} on this machine, got {threads}")
    kind = TARGETS[name]
    try:
        resolved: str = run_isolated(kind.flags, "mlir_sched.compiler.resolved_target:resolved_target")
    except (WorkerCrashError, WorkerTimeoutError) as error:
        raise UserError(f"IREE cannot resolve the target {name}: {error}") from None
    return kind.describe(kind, resolved, threads)


def available_cpus() -> int:
    """Return the number of CPUs that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def data_cache_bytes(level: int, sysfs: Path = _CPU_SYSFS) -> int:
    """Return the size in bytes of the data cache of a level that the first CPU sees, 0 when unknown."""
    for index in sorted((sysfs / "cpu0" / "cache").glob("index[0-9]*")):
        try:
            if int((index / "level").read_text()) == level and (index / "type").read_text().strip() != "Instruction":
                return _size_bytes((index / "size").read_text().strip())
        except (OSError, ValueError):
            continue
    return 0


def describe_cpu(kind: TargetKind, resolved: str, threads: int) -> Target:
    """Return a CPU target from the text of its ``#hal.executable.target``."""
    return Target(
        backend=kind.backend,
        flags=kind.flags,
        description=resolved,
        compiler=compiler_version(),
        cores=threads,
        vector_bytes=_integer(resolved, "native_vector_size"),
        vector_registers=_vector_registers(resolved),
        l1_bytes=data_cache_bytes(1),
        l2_bytes=data_cache_bytes(2),
        l3_bytes=data_cache_bytes(3),
        stack_bytes=_integer(resolved, "max_stack_allocation_size"),
    )


def _size_bytes(text: str) -> int:
    """Return the bytes that sysfs writes as ``32K`` or ``1M``."""
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1])
    return int(text[:-1]) * unit if unit else int(text)


def _integer(resolved: str, key: str) -> int:
    found = re.search(rf"\b{key} = (\d+)", resolved)
    if found is None:
        raise UserError(f"IREE's target description does not tell {key}: {resolved}")
    return int(found.group(1))


def _vector_registers(resolved: str) -> int:
    if "+avx512f" in resolved:
        return _AVX512_REGISTERS
    return _AARCH64_REGISTERS if "aarch64" in resolved or "arm64" in resolved else _OTHER_REGISTERS


TARGETS: dict[str, TargetKind] = {
    "llvm-cpu": TargetKind(
        backend="llvm-cpu",
        flags=(
            "--iree-hal-target-device=local",
            "--iree-hal-local-target-device-backends=llvm-cpu",
            "--iree-llvmcpu-target-cpu=host",
        ),
        describe=describe_cpu,
    ),
}
"""The known targets by the name that users give."""
