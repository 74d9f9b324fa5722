"""Reads a program's ops as plain data for the choice of layouts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import producer, walk
from mlir_sched.program.rewrites.constant_values import constant_globals, is_constant
from mlir_sched.program.rewrites.layout.channel_dims import Op, Program, Value
from mlir_sched.program.rewrites.layout.rule import Rule
from mlir_sched.program.rewrites.layout.rules import RULES

_MADE_IN_ANY_LAYOUT = ("linalg.broadcast", "linalg.fill", "tensor.empty")
"""Ops whose results need no copies."""
_INDEX_BITS = 64


@dataclass(frozen=True)
class Read:
    """A program as plain data.

    Attributes:
        program: The data.
        ops: The ops, in the order of ``program.ops``.
        numbers: The number of every value.
    """

    program: Program
    ops: tuple[Any, ...]
    numbers: dict[Any, int] = field(compare=False)


def rule_of(op: Any) -> Rule | None:
    """Return the rule for an op, if there is one."""
    rule = RULES.get(op.name)
    return rule if rule is not None and len(op.results) == 1 and rule.fits(op) else None


def read(module: ir.Module) -> Read:
    """Return a program, as it enters IREE's preprocessing phase, as plain data."""
    ops = tuple(op for op in walk(module.operation) if any(map(_is_tensor, (*op.operands, *op.results))))
    numbers: dict[Any, int] = {}
    for op in ops:
        for value in (*op.operands, *op.results):
            numbers.setdefault(value, len(numbers))
    constants = constant_globals(module)
    values = tuple(Value(_shape(value), _bytes(value, constants)) for value in numbers)
    return Read(Program(values, tuple(_read(op, numbers) for op in ops)), ops, numbers)


def _read(op: Any, numbers: dict[Any, int]) -> Op:
    values, reads, rule = tuple(numbers[value] for value in (*op.operands, *op.results)), len(op.operands), rule_of(op)
    if rule is None:
        return Op(values, reads, tuple(_no_axes(op)), None)
    axes = tuple(map(tuple, rule.axes(op)))
    return Op(values, reads, axes, rule.form, rule.channels(op), rule.key(op), rule.kind(op))


def _no_axes(op: Any) -> Iterator[tuple[None, ...]]:
    return ((None,) * len(_shape(value)) for value in (*op.operands, *op.results))


def _is_tensor(value: Any) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(value.type.shape) if _is_tensor(value) else ()


def _bytes(value: Any, constants: frozenset[str]) -> int:
    """Return the bytes of a tensor that is made in every call; 0 for other values, and where a size is not known."""
    made = producer(value)
    free = made is not None and (made.name in _MADE_IN_ANY_LAYOUT or is_constant(value, constants))
    if free or not _is_tensor(value) or not value.type.has_static_shape:
        return 0
    bits = getattr(value.type.element_type, "width", _INDEX_BITS)
    elements = 1
    for size in value.type.shape:
        elements *= size
    return elements * bits // 8
