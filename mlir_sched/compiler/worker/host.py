"""The host's part of a task's program, compiled once: what differs between candidates is put into it.

Two candidates of a task differ in the binary of the dispatch and in its number of workgroups alone. The host's code
is compiled with placeholders for the numbers, from any candidate, so that equal candidates give equal programs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith

from mlir_sched.compiler.chain import Chain
from mlir_sched.compiler.operations import constant_of, declarations, producer, walk
from mlir_sched.compiler.worker.linking import with_binaries
from mlir_sched.compiler.worker.session import END, HAL, VM, bytecode_of, run_phases

EXPORT, RETURN = "hal.executable.export", "hal.return"
_EXECUTABLE, _BINARY, _DEVICE = "hal.executable", "hal.executable.binary", "util.global"
_RODATA, _DISPATCH = "vm.rodata", "hal.command_buffer.dispatch"
_FIRST_COUNT = 3
"""Operand of a call of :data:`_DISPATCH` that is the number of workgroups along x; those along y and z follow."""
KEPT = 128
"""Hosts that a process keeps, about as many as a large program has tasks."""
PLACEHOLDERS = (0x7FFFFF01, 0x7FFFFF03, 0x7FFFFF05)
"""Numbers of workgroups along x, y and z in a host's code that serves for any; more than any dispatch has."""


class Host:
    """The host's part of a task's program.

    Args:
        module: The program after phase ``vm``, with :data:`PLACEHOLDERS` for numbers of workgroups.
        binary: The attribute that holds the binary in it.
    """

    def __init__(self, module: Any, binary: Any) -> None:
        self._module, self._binary = module, binary

    @cached_property
    def is_whole(self) -> bool:
        """Whether the binary has its place, and the placeholders are the numbers of every dispatch and nothing else."""
        dispatches = [op for op in walk(self._module) if _callee(op) == _DISPATCH]
        counts = {tuple(map(_number, [*op.operands][_FIRST_COUNT : _FIRST_COUNT + 3])) for op in dispatches}
        uses = [use for op in _placeholders(self._module) for use in op.results[0].uses]
        places = [*_binaries(self._module, self._binary)]
        return counts == {PLACEHOLDERS} and len(uses) == 3 * len(dispatches) and len(places) == 1

    def program(self, binary: Any, counts: tuple[int, ...]) -> bytes:
        """Return the program of a candidate.

        Args:
            binary: The attribute that holds its binary.
            counts: Its numbers of workgroups along x, y and z.
        """
        module = self._module.clone()
        for op in list(_binaries(module, self._binary)):
            op.attributes["value"] = binary
        for op in list(_placeholders(module)):
            count = counts[PLACEHOLDERS.index(_value(op))]
            op.attributes["value"] = ir.IntegerAttr.get(op.results[0].type, count)
        return bytecode_of(module)


@lru_cache(maxsize=KEPT)
def _hosts(source: str, chain: Chain | None) -> list[Host]:
    """Return where the host of a task's program is kept, empty before the first candidate; the last are kept."""
    del source, chain
    return []


def finished(module: Any, source: str, chain: Chain | None) -> bytes:
    """Return the program of a candidate.

    Args:
        module: The candidate's program after phase ``executable-targets``, which is changed.
        source: The task's program.
        chain: The chain that it has, if any.

    Raises:
        CompilerError: The compiler rejects the program.
    """
    counts, hosts, whole = counts_of(module), _hosts(source, chain), None
    if counts is None or (hosts and not hosts[0].is_whole):
        return _whole(with_binaries(module, source))
    if hosts:
        _drop_host(module)
    else:
        whole, module = module, module.clone()  # a clone has its uses in an order that is always the same
        _set_counts(module, PLACEHOLDERS)
    module = with_binaries(module, source)
    (binary,) = [op.attributes["data"] for op in declarations(module) if op.name == _BINARY]
    if whole is not None:
        run_phases(module, HAL, VM)
        hosts.append(Host(module, binary))
        if not hosts[0].is_whole:
            return _whole(with_binaries(whole, source))
    return hosts[0].program(binary, counts)


def counts_of(module: Any) -> tuple[int, int, int] | None:
    """Return the numbers of workgroups of a program's only dispatch after translation; None if values decide them."""
    found = [tuple(map(_constant, op.operands)) for op in _returns(module)]
    match found:
        case [(int(x), int(y), int(z))]:
            return x, y, z
    return None


def _set_counts(module: Any, counts: tuple[int, ...]) -> None:
    """Replace the numbers of workgroups, and drop those before, which would leave their marks in the host."""
    (op,) = _returns(module)
    former = {producer(value) for value in op.operands}
    with ir.InsertionPoint(op):
        for number, count in enumerate(counts):
            op.operands[number] = arith.constant(ir.IndexType.get(), count)
    for constant in former:
        if not list(constant.results[0].uses):
            constant.erase()


def _returns(module: Any) -> Iterator[Any]:
    """Yield the ops that return the numbers of workgroups of a program's dispatches."""
    exports = [op for op in declarations(module) if op.name == EXPORT]
    return (op for export in exports for op in walk(export) if op.name == RETURN)


def _drop_host(module: Any) -> None:
    """Leave the executables and the devices of a program."""
    for op in [op.operation for op in module.regions[0].blocks[0]]:
        if op.name == _EXECUTABLE:
            op.attributes["sym_visibility"] = ir.StringAttr.get("public")  # a private one that nothing uses is dropped
        elif op.name != _DEVICE:
            op.erase()


def _whole(module: Any) -> bytes:
    """Return a program with a host of its own, from phase ``hal`` on."""
    run_phases(module, HAL, END)
    return bytecode_of(module)


def _binaries(module: Any, binary: Any) -> Iterator[Any]:
    return (op for op in declarations(module) if op.name == _RODATA and op.attributes["value"] == binary)


def _placeholders(module: Any) -> Iterator[Any]:
    return (op for op in walk(module) if op.name == "vm.const.i32" and _value(op) in PLACEHOLDERS)


def _callee(op: Any) -> str:
    is_call = op.name == "vm.call.variadic"
    return str(ir.FlatSymbolRefAttr(op.attributes["callee"]).value) if is_call else ""


def _number(value: Any) -> int | None:
    """Return the constant that a value of the virtual machine is; None for any other value."""
    op = producer(value)
    return _value(op) if op is not None and op.name == "vm.const.i32" else None


def _value(op: Any) -> int:
    return int(ir.IntegerAttr(op.attributes["value"]).value)


def _constant(value: Any) -> int | None:
    attribute = constant_of(value)
    return None if attribute is None else int(ir.IntegerAttr(attribute).value)
