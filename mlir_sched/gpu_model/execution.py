"""The execution of a kernel by some of its threads, as far as it can be told without data.

Loops of code for static shapes have constant bounds, and addresses are sums of the kernel's parameters, thread ids and
constants. Both are computed here: how often a thread executes each instruction, and which addresses the threads of a
warp access together. Values that depend on data are unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mlir_sched.gpu_model.memory import WARP
from mlir_sched.gpu_model.ptx import Instruction, Kernel, PtxError

MAX_STEPS = 300_000
"""Most instructions on the way to branch conditions that one thread may take; about 2 us each."""
_PARAMETER = 1 << 48
"""Distance between the addresses that stand for the parameters of a kernel; no buffer is larger."""
_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _quotient(a: int, b: int) -> int:
    """Return a quotient rounded towards zero, as PTX does; exact for any integers."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_ARITHMETIC: Mapping[str, Callable[[int, int], int | None]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << min(b, 64),
    "shr": lambda a, b: a >> min(b, 64),
    "min": min,
    "max": max,
    "div": lambda a, b: _quotient(a, b) if b else None,
    "rem": lambda a, b: a - b * _quotient(a, b) if b else None,
}


@dataclass(frozen=True)
class Execution:
    """What one thread does.

    Attributes:
        counts: How often it executes each instruction of the kernel.
        addresses: The address that each instruction accesses first, by the instruction's index; addresses of shared
            memory begin at 0. Unknown addresses are missing.
    """

    counts: tuple[int, ...]
    addresses: Mapping[int, int]


class Threads:
    """The threads of the first workgroup of a kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._blocks = kernel.blocks()

    def execute(self, thread: tuple[int, int, int]) -> Execution:
        """Return what a thread does, loops included; no addresses are computed.

        Raises:
            PtxError: The thread takes more than :data:`MAX_STEPS`.
        """
        return self._run(thread, self._deciding, once=False)

    def first_addresses(self, thread: tuple[int, int, int]) -> Mapping[int, int]:
        """Return the addresses that a thread accesses when it goes through every loop once, by instruction."""
        return self._run(thread, self._addressing, once=True).addresses

    @cached_property
    def _deciding(self) -> frozenset[int]:
        """Instructions whose results decide which branches are taken."""
        branches = (i for i in self._kernel.instructions if i.opcode.startswith("bra"))
        return self._behind({i.predicate.lstrip("!") for i in branches if i.predicate})

    @cached_property
    def _addressing(self) -> frozenset[int]:
        """Instructions that access memory, those behind their addresses, and those that decide about branches."""
        accesses = {index for index, i in enumerate(self._kernel.instructions) if _address_of(i)}
        registers = {_address_of(self._kernel.instructions[index]).partition("+")[0] for index in accesses}
        return self._behind(registers) | accesses | self._deciding

    def _behind(self, registers: set[str]) -> frozenset[int]:
        """Return the instructions that registers depend on; what is loaded depends on nothing that is known here."""
        chosen, seen, open_ends = set[int](), set(registers), list(registers)
        while open_ends:
            for index in self._writers.get(open_ends.pop(), ()):
                instruction = self._kernel.instructions[index]
                read = {*instruction.operands[1:], instruction.predicate.lstrip("!")} - seen
                chosen.add(index)
                seen |= read
                open_ends += read
        return frozenset(chosen)

    @cached_property
    def _writers(self) -> Mapping[str, Sequence[int]]:
        """The instructions that write each register."""
        writers = defaultdict[str, list[int]](list)
        for index, instruction in enumerate(self._kernel.instructions):
            for register in instruction.written:
                writers[register].append(index)
        return writers

    def _run(self, thread: tuple[int, int, int], evaluated: Iterable[int], *, once: bool) -> Execution:
        instructions, wanted = self._kernel.instructions, frozenset(evaluated)
        state = _State(self._kernel, thread)
        counts, addresses = [0] * len(instructions), dict[int, int]()
        blocks = {start: [i for i in range(start, end) if i in wanted] for start, end in self._blocks}
        ends = dict(self._blocks)
        executed, steps, position = dict.fromkeys(ends, 0), 0, 0
        while position < len(instructions):
            executed[position] += 1
            steps += 1 + len(blocks[position])
            if steps > MAX_STEPS:
                raise PtxError(f"a thread takes more than {MAX_STEPS} steps, or its loops have no known end")
            for index in blocks[position]:
                if once and (address := state.address(instructions[index])) is not None:
                    addresses.setdefault(index, address)
                state.step(instructions[index])
            position = self._next(ends[position], state, once=once)
        for start, end in self._blocks:
            counts[start:end] = [executed[start]] * (end - start)
        return Execution(tuple(counts), addresses)

    def _next(self, end: int, state: _State, *, once: bool) -> int:
        """Return where execution goes on behind a block that ends at ``end``."""
        last = self._kernel.instructions[end - 1]
        if last.opcode.startswith("ret"):
            return len(self._kernel.instructions)
        if not last.opcode.startswith("bra"):
            return end
        target = self._kernel.labels[last.operands[-1]]
        if not last.predicate:
            return target
        holds = state.holds(last.predicate)
        if target < end:
            return target if holds and not once else end
        return target if holds else end


class _State:
    """The registers of a thread whose values are known."""

    def __init__(self, kernel: Kernel, thread: Sequence[int]) -> None:
        axes = "xyz"
        self._values: dict[str, int] = {f"%ctaid.{axis}": 0 for axis in axes}
        self._values |= {f"%tid.{axis}": number for axis, number in zip(axes, thread, strict=True)}
        self._values |= {f"%ntid.{axis}": n for axis, n in zip(axes, kernel.workgroup_size, strict=True)}
        (x, y, z), (width, height, _) = thread, kernel.workgroup_size
        self._values["%laneid"] = (x + width * (y + height * z)) % WARP
        self._parameters = {name: (index + 1) * _PARAMETER for index, name in enumerate(kernel.parameters)}

    def holds(self, predicate: str) -> bool:
        """Say whether a predicate is known to hold."""
        value = self._values.get(predicate.lstrip("!"))
        return value is not None and bool(value) != predicate.startswith("!")

    def address(self, instruction: Instruction) -> int | None:
        """Return the address in memory that an instruction accesses, of several the last one; None when unknown."""
        register, sign, offset = _address_of(instruction).partition("+")
        base = self._read(register)
        return None if base is None else base + (int(offset) if sign else 0)

    def step(self, instruction: Instruction) -> None:
        """Note what an instruction writes."""
        written = instruction.written
        if not written:
            return  # a branch, a barrier, a write to memory
        if instruction.predicate and not self.holds(instruction.predicate):
            return
        value = self._result(instruction) if len(written) == 1 else None
        for register in written:
            self._values.pop(register, None)
        if value is not None:
            self._values[written[0]] = value

    def _read(self, operand: str) -> int | None:
        if operand in self._values:
            return self._values[operand]
        if operand.lstrip("-").isdigit():
            return int(operand)
        return 0 if operand.startswith("__") else None  # shared memory, which begins at 0

    def _result(self, instruction: Instruction) -> int | None:
        name, *_, kind = instruction.parts
        if name == "ld":
            found = self._parameters.get(instruction.operands[1].strip("[]"))
            return found if "param" in instruction.parts else None
        if "f" in kind and name != "mov":
            return None
        values = [self._read(operand) for operand in instruction.operands[1:]]
        if name == "selp":
            chosen = values[2]
            return None if chosen is None else values[0] if chosen else values[1]
        if any(value is None for value in values):
            return None
        return _computed(instruction.parts, [value for value in values if value is not None])


def _address_of(instruction: Instruction) -> str:
    """Return the address that an instruction accesses, of several the last one; empty for any other instruction."""
    within = [operand for operand in instruction.operands if operand.startswith("[")]
    return "" if not within or "param" in instruction.parts else within[-1].strip("[]").replace(" ", "")


def _computed(parts: Sequence[str], values: Sequence[int]) -> int | None:
    """Return the result of an instruction on integers; None when it is none of those that are known here."""
    name, kind = parts[0], parts[-1]
    bits = int(kind[1:]) if kind[1:].isdigit() else 1
    signed = [_as_signed(value, bits) if kind[0] == "s" else value & _mask(bits) for value in values]
    if name in ("mov", "cvta"):
        return values[0]
    if name == "cvt":
        wanted = parts[-2]
        return signed[0] & _mask(int(wanted[1:])) if wanted[1:].isdigit() else None
    if name == "setp":
        compare = _COMPARISONS.get(parts[1])
        return None if compare is None or len(parts) != 3 else int(compare(*signed))
    if name in ("mul", "mad"):
        product = signed[0] * signed[1]
        width = 2 * bits if "wide" in parts else bits
        product = product >> bits if "hi" in parts else product
        return (product + (values[2] if name == "mad" else 0)) & _mask(width)
    if name in ("neg", "not"):
        return (-signed[0] if name == "neg" else ~signed[0]) & _mask(bits)
    operation = _ARITHMETIC.get(name)
    found = None if operation is None else operation(*signed)
    return None if found is None else found & _mask(bits)


def _mask(bits: int) -> int:
    return (1 << bits) - 1


def _as_signed(value: int, bits: int) -> int:
    value &= _mask(bits)
    return value - (1 << bits) if value >> (bits - 1) else value
