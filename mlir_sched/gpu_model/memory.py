"""How the threads of a warp access memory together: sectors of global memory, turns of the banks of shared memory."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlir_sched.gpu_model.ptx import Instruction, Kernel

WARP = 32
"""Threads that execute an instruction together."""
SECTOR_BYTES = 32
"""Bytes that a global access moves at least, and in whole. Source: CUDA C++ Best Practices Guide, coalesced access."""
BANKS, BANK_BYTES = 32, 4
"""Banks of shared memory, each of which serves one word per clock. Source: CUDA C++ Programming Guide."""
_VECTOR = re.compile(r"^v(\d)$")
_TYPE = re.compile(r"^[a-z]+(\d+)$")


@dataclass(frozen=True)
class Access:
    """What one execution of an instruction by a warp moves.

    Attributes:
        index: The instruction's index in the kernel.
        global_bytes: Bytes of the sectors of global memory.
        shared_turns: Clocks for which the banks of shared memory are busy.
    """

    index: int
    global_bytes: int
    shared_turns: int


def accesses(kernel: Kernel, addresses: Sequence[Mapping[int, int]]) -> list[Access]:
    """Return the accesses to memory of a kernel's code.

    Args:
        addresses: Addresses by instruction, per thread of a warp (``Threads.first_addresses``). Where an address is not
            known, neighbouring threads are taken to access neighbouring words.
    """
    found = []
    for index, instruction in enumerate(kernel.instructions):
        if not (kinds := {"global", "shared"}.intersection(re.split(r"[.:]", instruction.opcode))):
            continue
        width = bytes_per_thread(instruction)
        known = [each[index] for each in addresses if index in each]
        starts = known if len(known) == len(addresses) else [lane * width for lane in range(len(addresses))]
        moved = SECTOR_BYTES * len(_units(starts, width, SECTOR_BYTES)) if "global" in kinds else 0
        found.append(Access(index, moved, _turns(starts, width) if "shared" in kinds else 0))
    return found


def bytes_per_thread(instruction: Instruction) -> int:
    """Return how many bytes an instruction moves for one thread."""
    if instruction.opcode.startswith("cp.async"):
        sizes = [operand for operand in instruction.operands if operand.isdigit()]
        return int(sizes[0]) if sizes else BANK_BYTES
    parts = instruction.parts
    if parts[0] == "ldmatrix":  # a thread names a row of 16 bytes, and gets 4 bytes of each matrix
        return 16
    elements = next((int(found.group(1)) for part in parts if (found := _VECTOR.match(part))), 1)
    bits = _TYPE.match(parts[-1])
    return elements * (int(bits.group(1)) if bits else 32) // 8


def _units(starts: Sequence[int], width: int, unit: int) -> set[int]:
    """Return which units of memory threads touch that access ``width`` bytes each."""
    return {place for start in starts for place in range(start // unit, (start + width - 1) // unit + 1)}


def _turns(starts: Sequence[int], width: int) -> int:
    """Return the most words that one bank has to serve; threads that read one word share it."""
    loads = [0] * BANKS
    for word in _units(starts, width, BANK_BYTES):
        loads[word % BANKS] += 1
    return max(loads)
