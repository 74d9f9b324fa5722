"""Parts of a program as programs of their own: some ops as one function, whose inputs are what others make."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import producer, symbol_of, walk
from mlir_sched.errors import UserError
from mlir_sched.program.worker.rewriting import parsed_program

_FUNCTION, _LOAD, _GLOBAL, _FILL = "util.func", "util.global.load", "util.global", "linalg.fill"
_NOT_CUT = ("hal.", "util.return", "util.call")
"""Ops that bring tensors into functions and out of them."""


def number_of_ops(path: str) -> int:
    """Return the number of ops that can be cut out of a program: those of its function with most ops.

    Raises:
        UserError: The compiler rejects the program.
    """
    with parsed_program(path) as program:
        return len(_ops(program))


def cut(path: str, chosen: Sequence[int]) -> str:
    """Return a program of some of a program's ops as text.

    What the ops read from others is an input; constants, and tensors that are filled with one, come along. What others
    read from them, or nothing reads, is a result.

    Args:
        chosen: Numbers of the ops, ascending; at least one.

    Raises:
        UserError: The compiler rejects the program, or the ops read or make something that is no static tensor.
    """
    with parsed_program(path) as program:
        ops = _ops(program)
        return _Cut(program, [ops[number] for number in chosen]).text()


def _ops(program: ir.Module) -> list[Any]:
    """Return the ops of the function with most ops that can be cut out, in their order."""
    functions = (op for op in _symbols(program) if op.name == _FUNCTION)
    blocks = (op.regions[0].blocks[0] for op in functions if len(op.regions[0].blocks) == 1)
    found = ([op for op in (each.operation for each in block) if _can_be_cut(op)] for block in blocks)
    return max(found, key=len, default=[])


def _symbols(program: ir.Module) -> Iterator[Any]:
    """Yield the functions of a program, and all else that has a symbol."""
    return (op.operation for op in program.operation.regions[0].blocks[0])


def _can_be_cut(op: Any) -> bool:
    return not op.name.startswith(_NOT_CUT) and not _comes_along(op)


def _comes_along(op: Any) -> bool:
    """Say whether an op makes a constant, or a tensor that holds one number, or nothing yet."""
    if op.name == _FILL:
        return all(made is not None and _comes_along(made) for made in map(producer, op.operands))
    return not op.operands and not op.regions and not op.name.startswith(_NOT_CUT)


class _Cut:
    """A program that is put together of ops of another one."""

    def __init__(self, program: ir.Module, ops: Sequence[Any]) -> None:
        self.program, self.ops, self.inside = program, ops, set(ops)
        self.values: dict[Any, Any] = {}
        self.globals: set[str] = set()

    def text(self) -> str:
        """Return the program, whose function is called ``main``."""
        made = {value for op in self.ops for value in op.results}
        read = dict.fromkeys(value for op in self.ops for value in _read_by(op))
        inputs = [value for value in read if value not in made and not self._is_constant(value)]
        outputs = [value for op in self.ops for value in op.results if self._is_read_outside(value)]
        for value in (*inputs, *outputs):
            if not isinstance(value.type, ir.RankedTensorType) or not value.type.has_static_shape:
                raise UserError(f"a part of the program reads or makes {value.type}, which is no static tensor")
        self.result = ir.Module.create()
        kinds = ir.FunctionType.get([value.type for value in inputs], [value.type for value in outputs])
        attributes = {"sym_name": ir.StringAttr.get("main"), "function_type": ir.TypeAttr.get(kinds)}
        with ir.InsertionPoint(self.result.body):
            function = ir.Operation.create("func.func", attributes=attributes, regions=1)
        block = function.regions[0].blocks.append(*kinds.inputs)
        self.values = dict(zip(inputs, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for op in self.ops:
                self._copy(op)
            ir.Operation.create("func.return", operands=[self.values[value] for value in outputs])
        return str(self.result.operation.get_asm())

    def _is_constant(self, value: Any) -> bool:
        made = producer(value)
        return made is not None and _comes_along(made)

    def _is_read_outside(self, value: Any) -> bool:
        readers = [_top(use.owner.operation, value) for use in value.uses]
        return not readers or any(reader not in self.inside for reader in readers)

    def _copy(self, op: Any) -> None:
        """Copy an op, and the constants that it reads, to the current place."""
        for value in _read_by(op):
            if value not in self.values:
                self._copy(producer(value))
        if op.name == _LOAD:
            self._copy_global(str(ir.FlatSymbolRefAttr(op.attributes["global"]).value))
        copy = op.clone()
        for each in (copy, *walk(copy)):
            for place, operand in enumerate(each.operands):
                if operand in self.values:
                    each.operands[place] = self.values[operand]
        self.values |= dict(zip(op.results, copy.results, strict=True))

    def _copy_global(self, name: str) -> None:
        """Copy a global variable, with its elements or the name of its parameter, unless it is there."""
        if name in self.globals:
            return
        self.globals.add(name)
        known = (op for op in _symbols(self.program) if op.name == _GLOBAL)
        next(op for op in known if symbol_of(op) == name).clone(ip=ir.InsertionPoint.at_block_begin(self.result.body))


def _read_by(op: Any) -> Iterator[Any]:
    """Yield the values that an op reads from outside, those that ops in its regions read among them."""
    inside: Collection[Any] = {op, *walk(op)}
    yield from op.operands
    for each in walk(op):
        yield from (value for value in each.operands if _owner(value) not in inside)


def _owner(value: Any) -> Any:
    """Return the op that makes a value, or in whose region the value is an argument."""
    made = producer(value)
    return value.owner.owner.operation if made is None else made


def _top(op: Any, value: Any) -> Any:
    """Return the op of the block in which a value is made that an op is, or is inside of."""
    block = producer(value).block
    while op.block != block:
        op = op.parent.operation
    return op
