"""The executable target to which IREE resolves compiler flags, and what its text tells."""

import re
from collections.abc import Sequence

from mlir_sched.compiler.worker_process import run_isolated
from mlir_sched.errors import UserError
from mlir_sched.processes.limits import ChildError
from mlir_sched.targets.target import GpuLimits


def resolve(name: str, flags: tuple[str, ...]) -> str:
    """Return IREE's ``#hal.executable.target`` for a target's flags.

    Raises:
        UserError: IREE cannot resolve the target.
    """
    try:
        resolved: str = run_isolated(flags, "mlir_sched.compiler.worker.resolved_target:resolved_target")
    except ChildError as error:
        raise UserError(f"IREE cannot resolve the target {name}: {error}") from None
    return resolved


def integer(resolved: str, key: str) -> int:
    """Return the number that a resolved executable target has for a key.

    Raises:
        UserError: The target does not have the key.
    """
    found = re.search(rf"\b{key} = (\d+)", resolved)
    if found is None:
        raise UserError(f"IREE's target description does not tell {key}: {resolved}")
    return int(found.group(1))


def gpu_limits(resolved: str) -> GpuLimits:
    """Return the limits within which IREE generates code for a resolved target with workgroups of threads.

    Raises:
        UserError: The target does not tell a limit.
    """
    return GpuLimits(
        subgroup_size=min(_integers(resolved, "subgroup_size_choices")),
        workgroup_threads=integer(resolved, "max_thread_count_per_workgroup"),
        workgroup_size=xyz(_integers(resolved, "max_workgroup_sizes")),
        workgroup_counts=xyz(_integers(resolved, "max_workgroup_counts")),
        shared_memory_bytes=integer(resolved, "max_workgroup_memory_bytes"),
    )


def smaller_limits(compiler: GpuLimits, driver: GpuLimits) -> GpuLimits:
    """Return the limits within which IREE generates code that a device runs: the smaller of both, and its subgroups."""
    return GpuLimits(
        subgroup_size=driver.subgroup_size,
        workgroup_threads=min(compiler.workgroup_threads, driver.workgroup_threads),
        workgroup_size=_smaller(compiler.workgroup_size, driver.workgroup_size),
        workgroup_counts=_smaller(compiler.workgroup_counts, driver.workgroup_counts),
        shared_memory_bytes=min(compiler.shared_memory_bytes, driver.shared_memory_bytes),
        cooperative_matrices=compiler.cooperative_matrices & driver.cooperative_matrices,
    )


def _smaller(first: tuple[int, int, int], second: tuple[int, int, int]) -> tuple[int, int, int]:
    return min(first[0], second[0]), min(first[1], second[1]), min(first[2], second[2])


def _integers(resolved: str, key: str) -> list[int]:
    found = re.search(rf"\b{key} = \[([\d, ]+)\]", resolved)
    if found is None:
        raise UserError(f"IREE's target description does not tell {key}: {resolved}")
    return [int(number) for number in found.group(1).split(",")]


def xyz(numbers: Sequence[int]) -> tuple[int, int, int]:
    """Return the numbers of three dimensions as a tuple."""
    x, y, z = numbers
    return x, y, z
