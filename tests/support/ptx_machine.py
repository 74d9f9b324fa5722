"""A machine that runs PTX, so that numbers of code for NVIDIA GPUs are checked without one.

All threads of a workgroup run together: in every step, the threads that are furthest behind in the text execute their
instruction. Threads that took different branches so meet again, as those of a warp do. A barrier waits for all threads.
Known are the instructions of the kernels that tests run; any other is an error.

Source: NVIDIA, "Parallel Thread Execution ISA".
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlir_sched.compiler.compile_result import Launch
from mlir_sched.gpu_model.memory import WARP
from mlir_sched.gpu_model.ptx import Instruction, Kernel

Words = NDArray[np.uint64]
"""One register of every thread, as bits."""
BASE = 1 << 40
"""Distance between the addresses of buffers; shared memory begins at 0."""
SHARED_BYTES = 1 << 18
_INTEGERS = {"add": np.add, "sub": np.subtract, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_FLOATS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
_COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def run_kernel(kernel: Kernel, launch: Launch, buffers: Sequence[NDArray[Any]]) -> None:
    """Run all workgroups of a kernel, one after the other; results are in the buffers afterwards.

    Args:
        kernel: The code.
        launch: How it is launched.
        buffers: The arrays behind the kernel's parameters, each contiguous.

    Raises:
        NotImplementedError: The machine does not know an instruction.
    """
    memories = [np.zeros(SHARED_BYTES, np.uint8), *(buffer.reshape(-1).view(np.uint8) for buffer in buffers)]
    for z, y, x in itertools.product(*(range(size) for size in reversed(launch.grid))):
        memories[0][:] = 0xFF  # what nobody has written is not a number
        _Workgroup(kernel, launch, (x, y, z), memories).run()


class _Workgroup:
    """The threads of one workgroup.

    Args:
        kernel, launch: As in :func:`run_kernel`.
        place: Index of the workgroup along x, y and z.
        memories: Shared memory, then the buffers, as bytes.
    """

    def __init__(
        self, kernel: Kernel, launch: Launch, place: tuple[int, int, int], memories: list[NDArray[np.uint8]]
    ) -> None:
        self.kernel, self.memories = kernel, memories
        number = np.arange(launch.threads)
        x, y, _ = launch.workgroup_size
        self.registers: dict[str, Words] = {}
        ids = (number % x, number // x % y, number // (x * y))
        for axis, own, size, at in zip("xyz", ids, launch.workgroup_size, place, strict=True):
            self.registers[f"%tid.{axis}"] = own.astype(np.uint64)
            self.registers[f"%ntid.{axis}"] = np.full(launch.threads, size, np.uint64)
            self.registers[f"%ctaid.{axis}"] = np.full(launch.threads, at, np.uint64)
        self.registers["%laneid"] = (number % WARP).astype(np.uint64)
        self.at = np.zeros(launch.threads, np.int64)
        self.threads = launch.threads

    def run(self) -> None:
        """Run until all threads have returned."""
        end = len(self.kernel.instructions)
        while (waiting := self.at < end).any():
            places = np.unique(self.at[waiting])
            behind = [int(place) for place in places if not self._is_barrier(place)]
            place = behind[0] if behind else int(places[0])
            assert behind or len(places) == 1, "threads wait at different barriers"
            active = self.at == place
            self.at[active] = place + 1
            self._step(self.kernel.instructions[place], active)

    def _is_barrier(self, place: int) -> bool:
        return self.kernel.instructions[place].opcode.startswith("bar.")

    def _step(self, instruction: Instruction, active: NDArray[np.bool_]) -> None:
        if instruction.predicate:
            holds = self.registers[instruction.predicate.lstrip("!")] != 0
            active = active & (holds != instruction.predicate.startswith("!"))
        name, operands = instruction.parts[0], instruction.operands
        if name == "bra":
            self.at[active] = self.kernel.labels[operands[-1]]
        elif name == "ret":
            self.at[active] = len(self.kernel.instructions)
        elif name == "st":
            self._store(instruction, active)
        elif name == "ld" and "param" not in instruction.parts:
            self._load(instruction, active)
        elif name == "cp":
            self._copy(instruction, active)
        elif name == "mov" and operands[0].startswith("{"):
            self._unpack(instruction, active)
        elif name != "bar":
            self._write(operands[0], self._result(instruction, active), active)

    def _result(self, instruction: Instruction, active: NDArray[np.bool_]) -> Words:
        name, *_, kind = instruction.parts
        if name == "ld":
            parameter = self.kernel.parameters.index(instruction.operands[1].strip("[]"))
            return np.full(self.threads, (parameter + 1) * BASE, np.uint64)
        if name == "mov" and instruction.operands[1].startswith("{"):
            return self._packed(instruction.operands[1], int(kind[1:]) // len(_parts(instruction.operands[1])))
        values = [self._read(operand) for operand in instruction.operands[1:]]
        if name == "shfl":
            return self._shuffled(instruction, values, active)
        if name in ("mov", "cvta"):
            return values[0]
        if name == "selp":
            return np.where(values[2] != 0, values[0], values[1])
        if kind == "f32" and name != "cvt":
            return _float_result(instruction, [value.astype(np.uint32).view(np.float32) for value in values])
        return _integer_result(instruction, values)

    def _unpack(self, instruction: Instruction, active: NDArray[np.bool_]) -> None:
        """Write the parts of a word to registers, the lowest first; ``_`` stands for a part that is not wanted."""
        (value,), parts = map(self._read, instruction.operands[1:]), _parts(instruction.operands[0])
        bits = int(instruction.parts[-1][1:]) // len(parts)
        for index, register in enumerate(parts):
            if register != "_":
                part = (value >> np.uint64(index * bits)) & np.uint64((1 << bits) - 1)
                self._write(register, part, active)

    def _packed(self, operand: str, bits: int) -> Words:
        """Return the word of several registers, the lowest first."""
        parts = [self._read(register) << np.uint64(index * bits) for index, register in enumerate(_parts(operand))]
        return np.asarray(np.bitwise_or.reduce(parts))

    def _shuffled(self, instruction: Instruction, values: Sequence[Words], active: NDArray[np.bool_]) -> Words:
        assert instruction.opcode == "shfl.sync.bfly.b32", instruction.opcode
        assert active.reshape(-1, WARP).all(axis=1).any(), "a shuffle without its lanes"
        return np.asarray(values[0][np.arange(self.threads) ^ values[1].astype(np.int64)])

    def _read(self, operand: str) -> Words:
        if operand in self.registers:
            return self.registers[operand]
        if operand.startswith("0f"):
            return np.full(self.threads, int(operand[2:], 16), np.uint64)
        if re.fullmatch(r"-?\d+", operand):
            return np.full(self.threads, int(operand) % (1 << 64), np.uint64)
        if operand.startswith("__"):  # shared memory
            return np.zeros(self.threads, np.uint64)
        raise NotImplementedError(operand)

    def _write(self, register: str, value: Words, active: NDArray[np.bool_]) -> None:
        known = self.registers.setdefault(register, np.zeros(self.threads, np.uint64))
        self.registers[register] = np.where(active, value.astype(np.uint64), known)

    def _places(self, instruction: Instruction, active: NDArray[np.bool_]) -> tuple[int, NDArray[np.int64], int, int]:
        """Return the memory, the first byte per active thread, the bytes of an element and the number of elements."""
        address = next(operand for operand in instruction.operands if operand.startswith("["))
        memory, places = self._at(address, active, shared="shared" in instruction.parts)
        count = next((int(part[1:]) for part in instruction.parts if re.fullmatch(r"v\d", part)), 1)
        return memory, places, int(instruction.parts[-1][1:]) // 8, count

    def _load(self, instruction: Instruction, active: NDArray[np.bool_]) -> None:
        memory, places, size, count = self._places(instruction, active)
        for index, register in enumerate(instruction.written):
            assert index < count
            read = self.memories[memory][places[:, None] + index * size + np.arange(size)]
            value = np.zeros(self.threads, np.uint64)
            value[active] = np.ascontiguousarray(read).view(f"u{size}")[:, 0]
            self._write(register, value, active)

    def _copy(self, instruction: Instruction, active: NDArray[np.bool_]) -> None:
        """Copy at once what the device copies to shared memory beside the arithmetic (``cp.async``)."""
        if instruction.parts[2] in ("commit_group", "wait_group", "wait_all"):
            return
        destination, source, size, *read = instruction.operands
        offsets = np.arange(int(size))
        bytes_read = self._read(read[0])[active] if read else np.full(int(active.sum()), size, np.uint64)
        (_, to), (memory, places) = self._at(destination, active, shared=True), self._at(source, active)
        within = offsets < bytes_read[:, None].astype(np.int64)  # what is not read becomes zero
        found = np.where(within, self.memories[memory][np.where(within, places[:, None] + offsets, 0)], 0)
        self.memories[0][to[:, None] + offsets] = found

    def _at(self, operand: str, active: NDArray[np.bool_], *, shared: bool = False) -> tuple[int, NDArray[np.int64]]:
        """Return the memory that an address is in, and the first byte per active thread."""
        register, sign, offset = operand.strip("[]").partition("+")
        places = self._read(register)[active].astype(np.int64) + (int(offset) if sign else 0)
        (memory,) = [0] if shared else np.unique(places // BASE)
        return int(memory), places - int(memory) * BASE

    def _store(self, instruction: Instruction, active: NDArray[np.bool_]) -> None:
        memory, places, size, count = self._places(instruction, active)
        registers = re.findall(r"%\w+|0f\w+|-?\d+", instruction.operands[1])
        assert len(registers) == count
        for index, register in enumerate(registers):
            value = self._read(register)[active].astype(f"u{size}")
            self.memories[memory][places[:, None] + index * size + np.arange(size)] = value[:, None].view(np.uint8)


def _parts(operand: str) -> list[str]:
    """Return the registers of an operand in braces."""
    return [register.strip() for register in operand.strip("{}").split(",")]


def _float_result(instruction: Instruction, values: Sequence[NDArray[np.float32]]) -> Words:
    name = instruction.parts[0]
    if name == "fma":
        wide = [value.astype(np.float64) for value in values]
        result = (wide[0] * wide[1] + wide[2]).astype(np.float32)
    elif name in _FLOATS:
        result = _FLOATS[name](*values)
    else:
        raise NotImplementedError(instruction.opcode)
    return np.asarray(result.view(np.uint32).astype(np.uint64))


def _integer_result(instruction: Instruction, values: Sequence[Words]) -> Words:
    name, kind = instruction.parts[0], instruction.parts[-1]
    bits = 1 if kind == "pred" else int(kind[1:])
    mask = np.uint64((1 << bits) - 1)
    operands = [value & mask for value in values]
    signed = [_as_signed(value, bits) for value in operands] if kind.startswith("s") else operands
    if name == "setp":
        return np.asarray(_COMPARISONS[instruction.parts[1]](*signed).astype(np.uint64))
    if name == "cvt":
        return np.asarray(np.asarray(signed[0]).astype(np.uint64))
    if name in ("mul", "mad"):
        product = signed[0] * signed[1]
        product = product if "wide" in instruction.parts else product.astype(np.uint64) & mask
        return np.asarray((product + (values[2] if name == "mad" else np.uint64(0))).astype(np.uint64))
    if name in ("shl", "shr"):
        shift = np.left_shift if name == "shl" else np.right_shift
        return np.asarray(shift(signed[0], values[1].astype(signed[0].dtype)).astype(np.uint64) & mask)
    if name in _INTEGERS:
        return np.asarray(_INTEGERS[name](*operands) & mask)
    raise NotImplementedError(instruction.opcode)


def _as_signed(value: Words, bits: int) -> NDArray[np.int64]:
    shift = np.int64(64 - bits)
    return np.asarray((value.astype(np.int64) << shift) >> shift)
