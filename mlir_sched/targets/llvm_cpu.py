"""This machine's CPU through IREE's llvm-cpu backend."""

import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from mlir_sched.compiler.flags import FUSED_PADDING
from mlir_sched.compiler.version import compiler_version
from mlir_sched.errors import UserError
from mlir_sched.targets.kind import DATA_TILING, DEFAULT, TargetKind
from mlir_sched.targets.machine import cpu_identity, cpu_model, local_task_workers, runtime_version
from mlir_sched.targets.processor import CPU, CPU_FEATURES, HOST, flag_values
from mlir_sched.targets.resolved import integer, resolve
from mlir_sched.targets.target import LOCAL, Target

NAME = "llvm-cpu"
_DEVICE = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu")
FLAGS = (*_DEVICE, f"{CPU}={HOST}")
"""The flags for the CPU that the compiler runs on. A detected target has flags that name this CPU."""
FEATURES = ("avx512f", "avx512bf16", "avx512vnni", "amx-tile", "avx2", "fma", "f16c", "neon", "sve", "dotprod", "v")
"""CPU features that decide which vector code is generated."""
_CPU_SYSFS = Path("/sys/devices/system/cpu")
_AVX512_REGISTERS, _AARCH64_REGISTERS, _OTHER_REGISTERS = 32, 32, 16


def detect(threads: int, device: str = "") -> Target:
    """Return this machine's CPU as a target for programs that run on ``threads`` threads.

    Raises:
        UserError: The number of threads is below 1 or above the number of CPUs, a device is named, or IREE cannot
            resolve the target.
    """
    if device:
        raise UserError(f"the target {NAME} is this machine's CPU and has no devices; got {NAME}:{device}")
    available = available_cpus()
    if not 1 <= threads <= available:
        raise UserError(f"threads must be from 1 to {available} on this machine, got {threads}")
    return target_of(naming_flags(FLAGS), threads)


def target_of(flags: Sequence[str], threads: int = 1) -> Target:
    """Return the CPU that compiler flags name as a target; flags that do not select it have no effect.

    Raises:
        UserError: IREE cannot resolve the target.
    """
    values = flag_values(flags)
    own = tuple(f"{name}={values[name]}" for name in (*flag_values(FLAGS), CPU_FEATURES) if name in values)
    return describe(resolve(NAME, own), threads, own)


@cache
def naming_flags(flags: tuple[str, ...]) -> tuple[str, ...]:
    """Return flags that name the CPU which flags such as :data:`FLAGS` stand for, so that IREE resolves both alike.

    IREE resolves ``host`` to a name, the features of the name, and those that the CPU has and lacks. The last are
    needed, too: virtual machines hide features.

    Raises:
        UserError: IREE cannot resolve the target.
    """
    resolved = resolve(NAME, flags)
    named = (*_DEVICE, f"{CPU}={_text(resolved, 'cpu') or 'generic'}")
    known, features = _text(resolve(NAME, named), "cpu_features"), _text(resolved, "cpu_features")
    more = features.removeprefix(known).lstrip(",")
    return (*named, f"{CPU_FEATURES}={more}") if more else named


def describe(resolved: str, threads: int, flags: tuple[str, ...] = FLAGS) -> Target:
    """Return the target from the text of its ``#hal.executable.target`` and its flags."""
    caches = data_cache_bytes(1), data_cache_bytes(2), data_cache_bytes(3)
    return Target(
        name=NAME,
        backend="llvm-cpu",
        driver=LOCAL,
        flags=flags,
        description=resolved,
        compiler=compiler_version(),
        processor=_text(resolved, "cpu") or "unknown CPU",
        cores=threads,
        vector_bytes=integer(resolved, "native_vector_size"),
        vector_registers=_vector_registers(resolved),
        l1_bytes=caches[0],
        l2_bytes=caches[1],
        l3_bytes=caches[2],
        stack_bytes=integer(resolved, "max_stack_allocation_size"),
        machine=(
            ("caches", "/".join(f"{size >> 10}K" for size in caches)),
            ("cpu", cpu_identity()),
            ("runtime", runtime_version()),
        ),
    )


def facts(target: Target) -> tuple[tuple[str, str], ...]:
    """Return the properties that decide the code of a CPU target, as (name, value)."""
    caches = enumerate((target.l1_bytes, target.l2_bytes, target.l3_bytes), 1)
    return (
        ("processor", f"{target.processor} ({cpu_model()})"),
        ("CPU features used", ", ".join(used_features(target)) or "none of those known here"),
        ("vectors", f"{target.vector_bytes} bytes wide, {target.vector_registers} registers"),
        ("data caches", ", ".join(f"L{i} {f'{size >> 10} KiB' if size else 'unknown'}" for i, size in caches)),
    )


def available_cpus() -> int:
    """Return the number of CPUs that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def used_features(target: Target) -> tuple[str, ...]:
    """Return the CPU features in :data:`FEATURES` that IREE uses."""
    enabled = {feature[1:] for feature in _text(target.description, "cpu_features").split(",") if feature[:1] == "+"}
    return tuple(feature for feature in FEATURES if feature in enabled)


def data_cache_bytes(level: int, sysfs: Path = _CPU_SYSFS) -> int:
    """Return the size in bytes of the first CPU's data cache at a level, 0 when unknown."""
    for index in sorted((sysfs / "cpu0" / "cache").glob("index[0-9]*")):
        try:
            if int((index / "level").read_text()) == level and (index / "type").read_text().strip() != "Instruction":
                return _size_bytes((index / "size").read_text().strip())
        except (OSError, ValueError):
            continue
    return 0


def _size_bytes(text: str) -> int:
    """Return the number of bytes of a size that sysfs writes as ``32K`` or ``1M``."""
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1])
    return int(text[:-1]) * unit if unit else int(text)


def _text(resolved: str, key: str) -> str:
    found = re.search(rf'\b{key} = "([^"]*)"', resolved)
    return found.group(1) if found else ""


def _vector_registers(resolved: str) -> int:
    if "+avx512f" in resolved:
        return _AVX512_REGISTERS
    return _AARCH64_REGISTERS if "aarch64" in resolved or "arm64" in resolved else _OTHER_REGISTERS


KIND = TargetKind(
    detect,
    {
        DEFAULT: (),
        "O3": ("--iree-opt-level=O3",),
        DATA_TILING: ("--iree-opt-data-tiling", "--iree-llvmcpu-enable-ukernels=all"),
        "fused-padding": (FUSED_PADDING,),
    },
    facts,
    threads=local_task_workers,
    rewrites="cpu",
    processor=(CPU, CPU_FEATURES),
)
