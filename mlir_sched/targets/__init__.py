"""The targets that can be tuned for, and the description of this machine as one of them.

A further target takes one more file here, one more entry of :data:`TARGETS`, and a folder with the target's name
(``_`` in place of ``-``) under ``transform_scripts/``.
"""

from __future__ import annotations

from mlir_sched.errors import UserError
from mlir_sched.targets import llvm_cpu, vulkan
from mlir_sched.targets.kind import TargetKind
from mlir_sched.targets.llvm_cpu import available_cpus
from mlir_sched.targets.target import Target

__all__ = ["TARGETS", "TargetKind", "available_cpus", "detect_target", "target_kind"]

TARGETS: dict[str, TargetKind] = {llvm_cpu.NAME: llvm_cpu.KIND, vulkan.NAME: vulkan.KIND}
"""The known targets by the name that users give."""


def detect_target(name: str, threads: int) -> Target:
    """Return the description of this machine as a target.

    Args:
        name: A key of :data:`TARGETS`.
        threads: CPU cores that programs may use, from 1 to the number of CPUs of this process.

    Raises:
        UserError: The name is unknown, the number of threads is impossible here, or the machine has no such device.
    """
    return target_kind(name).detect(threads)


def target_kind(name: str) -> TargetKind:
    """Return the kind of target with a name.

    Raises:
        UserError: No target has this name.
    """
    if name not in TARGETS:
        raise UserError(f"unknown target {name!r}; known targets: {', '.join(sorted(TARGETS))}")
    return TARGETS[name]
