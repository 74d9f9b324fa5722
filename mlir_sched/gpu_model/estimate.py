"""A model of the time that a GPU takes for a dispatch, from its assembled code alone.

The model knows what limits a multiprocessor: how many workgroups fit, how many instructions it issues, how fast it
multiplies and moves data, and how long a warp waits for data. It ranks programs of one dispatch; its seconds are no
measurement.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlir_sched.compiler.compile_result import Launch
from mlir_sched.gpu_model.execution import Execution, Threads
from mlir_sched.gpu_model.memory import WARP, accesses
from mlir_sched.gpu_model.ptx import Instruction, Kernel
from mlir_sched.gpu_model.ptxas import AssemblyError, Resources
from mlir_sched.targets.target import GpuResources

VERSION = 5
"""Number of this model; estimates of different versions cannot be compared."""
PARTITIONS = 4
"""Parts of a multiprocessor that each issue one instruction per clock and have a quarter of its arithmetic and matrix
units. A warp stays in one of them. Sources: NVIDIA's whitepapers on GA100 to GH100; CUDA C++ Programming Guide, "SIMT
Architecture" and "Compute Capability 8.x"."""
PARTITIONED = ("issue", "arithmetic", "matrix units")
"""What a partition has of its own; shared memory and the way to the L2 cache are the multiprocessor's."""
MOVED_BYTES_PER_CLOCK = 48
"""Bytes between a multiprocessor and the L2 cache per clock. Source: 5120 bytes for 108 multiprocessors, whitepaper on
GA100."""
REGISTERS_UNIT = 256
"""Registers are given to a warp in multiples of this number. Source: CUDA Occupancy Calculator."""
RESERVED_SHARED_BYTES = 1024
"""Shared memory that the system keeps of every workgroup. Source: CUDA C++ Programming Guide, "Shared Memory" of
compute capabilities 8.x and 9.0."""
_ARITHMETIC = ("fma", "mad", "mul", "add", "sub", "max", "min")
_FLOATS = ("f16", "f16x2", "bf16", "bf16x2", "f32")
GLOBAL_LATENCY, SHARED_LATENCY, ARITHMETIC_LATENCY = 500, 30, 4
"""Clocks until the result of a load, or of another instruction, can be used, about. Source: Jia et al., "Dissecting the
NVIDIA Volta GPU Architecture via Microbenchmarking" (2018), rounded. Matrix instructions take longer."""
_SYNCHRONIZATION = ("bar", "cp.async.wait")
"""Instructions behind which the data of other threads are there: no register tells what depends on them."""


@dataclass(frozen=True)
class Estimate:
    """What the model says of a dispatch.

    Attributes:
        seconds: Time of one call, without the time of its launch.
        limit: What takes this time: ``issue``, ``arithmetic``, ``matrix units``, ``L2 cache``, ``shared memory``,
            ``latency`` or ``device memory``.
        occupancy: Resident threads of a multiprocessor relative to the most that it can have, 0 to 1.
        moved_bytes: Bytes between multiprocessors and the L2 cache.
    """

    seconds: float
    limit: str
    occupancy: float
    moved_bytes: float


def estimate(
    kernel: Kernel, assembled: Resources, launch: Launch, device: GpuResources, *, footprint_bytes: int
) -> Estimate:
    """Return the estimated time of a dispatch.

    Args:
        footprint_bytes: Bytes of the dispatch's inputs and outputs, which the device's memory moves at least once.

    Raises:
        AssemblyError: A multiprocessor has no room for a workgroup.
        PtxError: It is not known how often the loops run.
    """
    threads = Threads(kernel)
    execution = threads.execute((0, 0, 0))
    lanes = [threads.first_addresses(_thread(lane, launch)) for lane in range(min(WARP, launch.threads))]
    warps, memory = math.ceil(launch.threads / WARP), accesses(kernel, lanes)
    warp_bytes = sum(execution.counts[access.index] * access.global_bytes for access in memory)
    shared_turns = sum(execution.counts[access.index] * access.shared_turns for access in memory)
    resident = _resident(assembled, launch, warps, device)
    per_warp = {
        **_issued(kernel, execution, device),
        "L2 cache": warp_bytes / MOVED_BYTES_PER_CLOCK,
        "shared memory": float(shared_turns),
    }
    rounds = math.ceil(launch.workgroups / device.multiprocessors)
    whole, rest = divmod(rounds, resident)
    alone = max(_busy(per_warp, warps).values()) + waiting_clocks(kernel, execution.counts)
    batches = [_busy(per_warp, count * warps) for count in [resident] * whole + [rest] * (rest > 0)]
    clocks = sum(max(alone, *busy.values()) for busy in batches)
    longest = max(batches[0], key=batches[0].__getitem__)
    limit = longest if batches[0][longest] >= alone else "latency"
    seconds, memory_s = clocks / device.clock_hz, footprint_bytes / device.memory_bytes_per_s
    moved = float(launch.workgroups * warps * warp_bytes)
    occupancy = min(resident, rounds) * warps * WARP / device.threads
    return Estimate(max(seconds, memory_s), limit if seconds >= memory_s else "device memory", occupancy, moved)


def _thread(lane: int, launch: Launch) -> tuple[int, int, int]:
    x, y, _ = launch.workgroup_size
    return lane % x, lane // x % y, lane // (x * y)


def _busy(per_warp: Mapping[str, float], warps: int) -> dict[str, float]:
    """Return the clocks for which the parts of a multiprocessor are busy with so many warps.

    Args:
        per_warp: Clocks of one warp at the rate of the whole multiprocessor.
        warps: Warps that are resident. The partition with the most of them is busy longest.
    """
    fullest = PARTITIONS * math.ceil(warps / PARTITIONS)
    return {name: clocks * (fullest if name in PARTITIONED else warps) for name, clocks in per_warp.items()}


def _resident(assembled: Resources, launch: Launch, warps: int, device: GpuResources) -> int:
    """Return how many workgroups a multiprocessor has room for.

    Raises:
        AssemblyError: There is no room for one.
    """
    registers = math.ceil(assembled.registers * WARP / REGISTERS_UNIT) * REGISTERS_UNIT * warps
    room = {
        "threads": device.threads // (warps * WARP),
        "registers": device.registers // registers,
        "shared memory": device.shared_memory_bytes // (launch.shared_memory_bytes + RESERVED_SHARED_BYTES),
    }
    for what, count in room.items():
        if count == 0:
            raise AssemblyError(f"a workgroup of {launch.threads} threads takes more {what} than a multiprocessor has")
    return min(device.workgroups, *room.values())


def _issued(kernel: Kernel, execution: Execution, device: GpuResources) -> dict[str, float]:
    """Return the clocks for which one warp occupies the parts of a multiprocessor that issue and compute."""
    counted = list(zip(kernel.instructions, execution.counts, strict=True))
    arithmetic = sum(n for i, n in counted if i.parts[0] in _ARITHMETIC and i.parts[-1] in _FLOATS)
    products = sum(n * _multiply_adds(i.opcode) for i, n in counted if i.opcode.startswith(("mma.", "wmma.mma")))
    return {
        "issue": sum(execution.counts) / PARTITIONS,
        "arithmetic": arithmetic * WARP / device.multiply_adds,
        "matrix units": products / device.matrix_multiply_adds,
    }


def _multiply_adds(opcode: str) -> int:
    """Return the multiply-adds of one matrix instruction, from its shape: ``m16n8k16``."""
    shape = next((part for part in opcode.split(".") if part.startswith("m") and part[1:2].isdigit()), "")
    sizes = [int(number) for number in shape.replace("m", " ").replace("n", " ").replace("k", " ").split()]
    return math.prod(sizes) if len(sizes) == 3 else 0


def waiting_clocks(kernel: Kernel, counts: Sequence[int]) -> float:
    """Return the clocks that a warp waits for what it has loaded or computed, if no other warp runs meanwhile.

    Of each basic block, which a thread executes as often as ``counts`` says, the longest chain of dependent
    instructions counts.
    """
    blocks = kernel.blocks(*_SYNCHRONIZATION)
    return sum(counts[start] * _longest_chain(kernel.instructions[start:end]) for start, end in blocks)


def _longest_chain(block: Sequence[Instruction]) -> float:
    """Return the clocks of the longest chain of instructions that each read what the one before writes."""
    ready = dict[str, float]()
    longest = 0.0
    for instruction in block:
        end = max((ready.get(register, 0.0) for register in instruction.read), default=0.0) + _latency(instruction)
        ready |= dict.fromkeys(instruction.written, end)
        longest = max(longest, end)
    return longest


def _latency(instruction: Instruction) -> float:
    """Return the clocks until what an instruction writes can be used.

    Of copies to shared memory that run beside the arithmetic (``cp.async``), the latency is divided among the groups
    that may still be under way when the code waits.
    """
    if instruction.opcode.startswith("cp.async.wait_group"):
        return GLOBAL_LATENCY / (1 + int(instruction.operands[0]))
    parts = instruction.parts
    if parts[0] in ("ld", "ldmatrix"):
        return GLOBAL_LATENCY if "global" in parts else SHARED_LATENCY if "shared" in parts else 0.0
    return 0.0 if parts[0] == "mov" or not instruction.written else ARITHMETIC_LATENCY
