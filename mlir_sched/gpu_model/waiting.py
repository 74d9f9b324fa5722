"""How long a warp waits for what it has loaded or computed, if no other warp runs meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from mlir_sched.gpu_model.ptx import Instruction, Kernel

GLOBAL_LATENCY, SHARED_LATENCY, ARITHMETIC_LATENCY = 500, 30, 4
"""Clocks until the result of a load, or of another instruction, can be used, about. Source: Jia et al., "Dissecting the
NVIDIA Volta GPU Architecture via Microbenchmarking" (2018), rounded. Matrix instructions take longer; counting them so
changed the rank of none of the candidates that were measured on an H200."""
_SYNCHRONIZATION = ("bar", "cp.async.wait")
"""Instructions behind which the data of other threads are there: no register tells what depends on them."""


def waiting_clocks(kernel: Kernel, counts: Sequence[int]) -> float:
    """Return the clocks that a warp waits: the longest chain of dependent instructions of each basic block.

    Args:
        kernel: The kernel.
        counts: How often a thread executes each instruction.
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
