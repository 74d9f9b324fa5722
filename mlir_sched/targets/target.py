"""The target of compilation: the backend, its compiler flags and the machine description for design spaces."""

import hashlib
from dataclasses import dataclass

from mlir_sched.targets.clock import WALL, Clock

LOCAL_SYNC, LOCAL_TASK = "local-sync", "local-task"
"""IREE's devices for the CPU: one runs programs on the calling thread, the other on IREE's own threads."""


@dataclass(frozen=True)
class Driver:
    """IREE's HAL driver of a device, which runs programs, and how it runs them.

    Attributes:
        uri: What IREE calls it: ``vulkan``, ``vulkan://GPU-<uuid>``; ``local`` for both devices of the CPU.
        clock: What the times of its programs are read from.
        on_host: Whether programs run in the process that calls them, on cores and in the memory of this machine. The
            number of their threads is then chosen, what they pass from dispatch to dispatch is recorded, and their
            state is reset between calls.
    """

    uri: str
    clock: Clock
    on_host: bool = False

    def device(self, threads: int) -> str:
        """Return the device (``--device`` of IREE's tools) that runs programs on ``threads`` threads."""
        if not self.on_host:
            return self.uri
        return LOCAL_SYNC if threads == 1 else LOCAL_TASK


LOCAL = Driver("local", WALL, on_host=True)
"""The driver of programs that run on this machine's CPU."""


def in_calling_thread(device: str) -> bool:
    """Say whether one of IREE's devices runs programs on the thread that calls them."""
    return device == LOCAL_SYNC


@dataclass(frozen=True, order=True)
class MatrixUnit:
    """A product of small matrices that the threads of a subgroup compute at once.

    Attributes:
        rows, columns: Extents of the result.
        reduction: Iterations of the reduction.
        inputs, result: Element types of both inputs, and of the result and its sums, as MLIR writes them.
    """

    rows: int
    columns: int
    reduction: int
    inputs: str
    result: str

    def __str__(self) -> str:
        """Return, for example, ``16x16x16 f16 to f32``."""
        return f"{self.rows}x{self.columns}x{self.reduction} {self.inputs} to {self.result}"


@dataclass(frozen=True)
class GpuLimits:
    """Limits of a workgroup on a device whose workgroups have many threads.

    Attributes:
        subgroup_size: Threads that run in lockstep.
        workgroup_threads: Largest number of threads in a workgroup.
        workgroup_size: Largest numbers of threads in a workgroup along x, y and z.
        workgroup_counts: Largest numbers of workgroups in a dispatch along x, y and z.
        shared_memory_bytes: Largest memory that the threads of a workgroup can share.
        cooperative_matrices: The products of Vulkan's cooperative matrices that IREE makes and the device computes.
    """

    subgroup_size: int
    workgroup_threads: int
    workgroup_size: tuple[int, int, int]
    workgroup_counts: tuple[int, int, int]
    shared_memory_bytes: int
    cooperative_matrices: frozenset[MatrixUnit] = frozenset()


@dataclass(frozen=True)
class GpuResources:
    """What a GPU runs workgroups with: the resources of one multiprocessor, and the rates of the device.

    Attributes:
        threads: Most threads that are resident on a multiprocessor.
        workgroups: Most workgroups that are resident on a multiprocessor.
        registers: 32-bit registers of a multiprocessor.
        shared_memory_bytes: Shared memory of a multiprocessor.
        multiply_adds: f32 multiply-adds of a multiprocessor per clock, without tensor cores.
        matrix_multiply_adds: f16 multiply-adds with f32 sums of a multiprocessor's tensor cores per clock.
        memory_bytes_per_s: Bandwidth of the device's memory.
    """

    multiprocessors: int
    threads: int
    workgroups: int
    registers: int
    shared_memory_bytes: int
    multiply_adds: int
    matrix_multiply_adds: int
    clock_hz: float
    memory_bytes_per_s: float


@dataclass(frozen=True)
class Target:
    """A backend with the machine it generates code for.

    Attributes:
        name: The target's name for users (``--target``) and of the folder with its transform modules.
        backend: IREE's target backend, e.g. ``llvm-cpu``.
        driver: What runs its programs, and how; :data:`LOCAL` for this machine's CPU.
        flags: ``iree-compile`` flags that select the target.
        description: IREE's resolved executable target, as it stands in the compiled IR; for a Vulkan device also its
            name and driver.
        compiler: IREE compiler version.
        processor: The processor that code is generated for, in a few words.
        cores: Number of units that run workgroups at the same time: CPU cores that may be used; 1 when unknown.
        vector_bytes: Width of a vector register: of a CPU core, or of one GPU thread's widest load.
        vector_registers: Vector registers of a CPU core or of one GPU thread.
        l1_bytes, l2_bytes, l3_bytes: Data cache sizes seen by one core; 0 when unknown.
        stack_bytes: Largest sum of stack temporaries that IREE accepts in a dispatch; 0 where IREE has no such limit.
        gpu: Limits of a workgroup's threads; None where a workgroup is one thread.
        gpu_resources: What the device runs workgroups with; None where that is not known.
        assembler: The architecture that device code is assembled for, as the assembler names it; empty where IREE's
            code is final.
        machine: Properties other than the generated code that times depend on, as (name, value), ordered by name:
            processor, caches and runtime, or a device.
    """

    name: str
    backend: str
    driver: Driver
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
    gpu_resources: GpuResources | None = None
    assembler: str = ""
    machine: tuple[tuple[str, str], ...] = ()

    @property
    def clock(self) -> Clock:
        """What the times of its programs are read from."""
        return self.driver.clock

    @property
    def chain_length(self) -> int:
        """Dispatches of the chain (``compiler/chain.py``) with which short dispatches are timed; 0 for none."""
        return self.clock.chain_length(self.cores)

    @property
    def key(self) -> str:
        """A short hash of the properties that decide the generated code: backend, description, compiler and flags.

        Machines with equal keys get the same code; its speed depends on ``machine``.
        """
        text = "\n".join((self.backend, self.description, self.compiler, *self.flags))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def vector_elements(self, element_bytes: int) -> int:
        """Return the number of elements of ``element_bytes`` that one vector register holds, at least 1."""
        return max(1, self.vector_bytes // element_bytes)
