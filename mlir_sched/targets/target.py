"""The target of compilation: the backend, its compiler flags and the machine description for design spaces."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

LOCAL = "local"
"""The driver of programs that run on this machine's CPU."""


LOCAL_SYNC, LOCAL_TASK = "local-sync", "local-task"
"""IREE's devices for the CPU: the thread that calls, and threads of IREE's own."""


def iree_device(driver: str, threads: int) -> str:
    """Return what IREE's tools call the device (``--device``) that runs the programs of a driver on so many threads."""
    if driver != LOCAL:
        return driver
    return LOCAL_SYNC if threads == 1 else LOCAL_TASK


@dataclass(frozen=True)
class GpuLimits:
    """What a workgroup may take on a device that runs workgroups of many threads.

    Attributes:
        subgroup_size: Threads that run in lockstep.
        workgroup_threads: Most threads of a workgroup.
        workgroup_size: Most threads of a workgroup along x, y and z.
        workgroup_counts: Most workgroups of a dispatch along x, y and z.
        shared_memory_bytes: Most memory that the threads of a workgroup share.
    """

    subgroup_size: int
    workgroup_threads: int
    workgroup_size: tuple[int, int, int]
    workgroup_counts: tuple[int, int, int]
    shared_memory_bytes: int


@dataclass(frozen=True)
class Target:
    """A backend with the machine it generates code for.

    Attributes:
        name: What users call it (``--target``), and the folder of its transform modules.
        backend: IREE's target backend, e.g. ``llvm-cpu``.
        driver: IREE's HAL device that runs its programs; :data:`LOCAL` for this machine's CPU.
        flags: ``iree-compile`` flags that select it.
        description: IREE's resolved executable target, as it stands in the compiled IR, and what identifies the device.
        compiler: IREE compiler version.
        processor: What code is generated for, in a few words.
        cores: What runs workgroups at the same time: CPU cores that may be used; 1 when unknown.
        vector_bytes: Width of a vector register: of a CPU core, or of one GPU thread's widest load.
        vector_registers: Vector registers of a CPU core or of one GPU thread.
        l1_bytes, l2_bytes, l3_bytes: Data cache sizes seen by one core; 0 when unknown.
        stack_bytes: Largest sum of stack temporaries IREE accepts in a dispatch; 0 where there is no such limit.
        gpu: Limits of a workgroup's threads; None where a workgroup is one thread.
        machine: What times depend on beside the generated code, as (name, value), ordered by name: processor, caches
            and runtime, or a device.
    """

    name: str
    backend: str
    driver: str
    flags: tuple[str, ...]
    description: str
    compiler: str
    processor: str
    cores: int
    vector_bytes: int
    vector_registers: int
    l1_bytes: int = 0
    l2_bytes: int = 0
    l3_bytes: int = 0
    stack_bytes: int = 0
    gpu: GpuLimits | None = None
    machine: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """A short hash of what decides the generated code: backend, description, compiler and flags.

        Machines with equal keys get the same code; how fast it is there depends on ``machine``.
        """
        text = "\n".join((self.backend, self.description, self.compiler, *self.flags))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def vector_elements(self, element_bytes: int) -> int:
        """Return how many elements of a type one vector register holds, at least 1."""
        return max(1, self.vector_bytes // element_bytes)
