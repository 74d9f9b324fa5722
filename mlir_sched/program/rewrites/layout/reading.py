"""Reads a program's ops as plain data for the choice of layouts."""

from math import prod
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import captured, producer
from mlir_sched.program.rewrites.constant_values import is_constant
from mlir_sched.program.rewrites.layout.channel_dims import Op, Program, Value
from mlir_sched.program.rewrites.layout.rules import RULES
from mlir_sched.program.rewrites.linalg_ops import is_static
from mlir_sched.program.rewrites.placed.body import Body
from mlir_sched.program.rewrites.walked_program import WalkedProgram

_MADE_IN_ANY_LAYOUT = ("linalg.broadcast", "linalg.fill", "tensor.empty")
"""Ops whose results need no copies."""
_INDEX_BITS = 64


def read(program: WalkedProgram) -> Program:
    """Return a program as plain data with the module's values and ops."""
    ops = {op: _read(op) for op in program.ops if op.parent.operation.name not in RULES}
    values: dict[Any, None] = dict.fromkeys(value for op in ops.values() for value in (*op.reads, *op.makes))
    return Program({value: Value(tuple(value.type.shape), _bytes(value, program.constants)) for value in values}, ops)


def _read(op: Any) -> Op:
    """Return an op as plain data; what the body of an op reads that can have a rule is read by this op."""
    rule, known = RULES.get(op.name), all(map(is_static, (*op.operands, *op.results)))
    reads = tuple(filter(_is_tensor, op.operands if rule is None else (*op.operands, *captured(op))))
    if rule is None or not known or len(op.results) != 1 or not rule.fits(op):
        return Op(reads, tuple(filter(_is_tensor, op.results)))
    pairs = zip((*Body(op).inputs, op.result), map(tuple, rule.axes(op)), strict=True)
    tied = tuple((value, axes) for value, axes in pairs if any(axis is not None for axis in axes))
    return Op(reads, (op.result,), tied, rule.channels, rule.reshapes)


def _is_tensor(value: Any) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def _bytes(value: Any, constants: frozenset[str]) -> int:
    """Return the bytes of a tensor that is made in every call; 0 for other values, and where a size is not known."""
    made, kind = producer(value), value.type
    if not kind.has_static_shape or (made and (made.name in _MADE_IN_ANY_LAYOUT or is_constant(value, constants))):
        return 0
    return int(prod(kind.shape)) * getattr(kind.element_type, "width", _INDEX_BITS) // 8
