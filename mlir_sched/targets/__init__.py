"""The targets that can be tuned for, and the description of this machine as one of them.

A further target takes one more file here, one more entry of :data:`TARGETS`, and a folder with the target's name
(``_`` in place of ``-``) under ``transform_scripts/``. Other distributions register a ``TargetKind`` under the entry
point ``mlir_sched.targets``, and its transform modules as any others.
"""

from pathlib import Path

from mlir_sched.errors import UserError
from mlir_sched.plugins import PluginGroup
from mlir_sched.targets import cuda, llvm_cpu, rocm, vulkan
from mlir_sched.targets.devices import FILE
from mlir_sched.targets.kind import TargetKind
from mlir_sched.targets.llvm_cpu import available_cpus
from mlir_sched.targets.target import Target

__all__ = ["TARGETS", "TargetKind", "absent_target", "available_cpus", "described_by", "detect_target", "target_kind"]

TARGETS: dict[str, TargetKind] = {
    llvm_cpu.NAME: llvm_cpu.KIND,
    vulkan.NAME: vulkan.KIND,
    cuda.NAME: cuda.KIND,
    rocm.NAME: rocm.KIND,
}
"""The targets that are built in, by the name that users give, without a device."""
KINDS = PluginGroup[TargetKind]("mlir_sched.targets", "target", TARGETS)


def detect_target(name: str, threads: int | None) -> Target:
    """Return the description of this machine as a target.

    Args:
        name: A name of :data:`KINDS`, alone or with a device: ``vulkan:llvmpipe``.
        threads: CPU cores that programs may use, from 1 to the number of CPUs of this process; None for as many as IREE
            takes by itself (``local_task_workers``), and for devices that are no CPU. The target's ``cores`` then has
            the number.

    Raises:
        UserError: The name is unknown, the number of threads is impossible here, or the machine has no such device.
    """
    kind = target_kind(name)
    return kind.detect(kind.threads() if threads is None else threads, name.partition(":")[2])


def absent_target(name: str) -> Target:
    """Return the description of a device that need not be there, for programs that are compiled and not run.

    Args:
        name: A name of :data:`KINDS`, alone or with a device: ``cuda:sm_90``.

    Raises:
        UserError: The name is unknown, or the target has to be a device of this machine.
    """
    kind = target_kind(name)
    if kind.absent is None:
        known = ", ".join(sorted(key for key, other in TARGETS.items() if other.absent is not None))
        raise UserError(f"programs for the target {name} are always run; only these need no device: {known}")
    return kind.absent(name.partition(":")[2])


def described_by(name: str, description: Path | None) -> str:
    """Return the name of a target with a device that a file describes; the name as it is without a file.

    Raises:
        UserError: The name has a device already, or the file's name does not end in ``.json``.
    """
    if description is None:
        return name
    if ":" in name or description.suffix != FILE:
        raise UserError(f"give a target without a device and a {FILE} file; got {name} and {description}")
    return f"{name}:{description.resolve()}"


def target_kind(name: str) -> TargetKind:
    """Return the kind of target with a name, whatever device follows the name.

    Raises:
        UserError: No target has this name, or what is registered under it is none.
    """
    kind = KINDS.named(name.partition(":")[0])
    if not isinstance(kind, TargetKind):
        raise UserError(f"{kind!r}, registered as the target {name!r}, is no TargetKind")
    return kind
