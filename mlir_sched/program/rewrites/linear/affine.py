"""Bodies of element-wise ops as affine functions of one number: ``scale * x + shift``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith

from mlir_sched.compiler.operations import captured, producer
from mlir_sched.program.rewrites.linalg_ops import copied, number

_SCALAR_OPS = ("arith.", "math.")
"""Dialects of the ops that make a number of others and do nothing else."""


@dataclass(frozen=True)
class Affine:
    """A number ``scale * x + shift``, where x is not known yet.

    Attributes:
        scale: A scalar; None for 1.
        shift: A scalar; None for 0.
    """

    scale: Any = None
    shift: Any = None


def applied(op: Any, place: int, x: Affine, scalars: Mapping[int, Any]) -> Affine | None:
    """Emit what the body of an element-wise op makes of an affine number, at the current insertion point.

    Args:
        op: The op.
        place: Which of its operands is the number.
        x: The number.
        scalars: What stands for the other operands that the body may read, by their places; constants from outside
            of the body are copied.

    Returns:
        None where the result is no affine function of the number, or depends on anything else.
    """
    *inner, end = [one.operation for one in op.regions[0].blocks[0]]
    arguments = op.regions[0].blocks[0].arguments
    known: dict[Any, Any] = {arguments[each]: scalar for each, scalar in scalars.items()} | {arguments[place]: x}
    constants = (value for value in captured(op) if _is_constant(value))
    known |= {value: copied(producer(value), []).result for value in constants}
    for one in inner:
        operands = [known.get(value) for value in one.operands]
        made = None if any(operand is None for operand in operands) else _made(one, operands)
        if made is None:
            return None
        known[one.result] = made
    found = known.get(end.operands[0])
    return found if isinstance(found, Affine) else None


def product(x: Any, y: Any) -> Affine:
    """Emit the product of an affine number and a scalar, in either order."""
    form, other = (x, y) if isinstance(x, Affine) else (y, x)
    scale = other if form.scale is None else arith.mulf(form.scale, other)
    return Affine(scale, None if form.shift is None else arith.mulf(form.shift, other))


def _is_constant(value: Any) -> bool:
    op = producer(value)
    return isinstance(value.type, ir.F32Type) and op is not None and op.name == "arith.constant"


def _made(op: Any, operands: Sequence[Any]) -> Any:
    """Emit what a scalar op makes of scalars and at most one affine number; return None where that is not known."""
    forms = sum(isinstance(operand, Affine) for operand in operands)
    if forms == 0:
        plain = op.name.startswith(_SCALAR_OPS) and len(op.results) == 1 and not len(op.regions)
        return copied(op, operands).result if plain else None
    return _RULES[op.name](*operands) if forms == 1 and op.name in _RULES else None


def _sum(x: Any, y: Any) -> Affine:
    form, other = (x, y) if isinstance(x, Affine) else (y, x)
    return Affine(form.scale, other if form.shift is None else arith.addf(form.shift, other))


def _difference(x: Any, y: Any) -> Affine:
    if isinstance(y, Affine):
        return _sum(_negated(y), x)
    return Affine(x.scale, arith.negf(y) if x.shift is None else arith.subf(x.shift, y))


def _quotient(x: Any, y: Any) -> Affine | None:
    if isinstance(y, Affine):
        return None
    scale = arith.divf(number(y.type, 1.0) if x.scale is None else x.scale, y)
    return Affine(scale, None if x.shift is None else arith.divf(x.shift, y))


def _negated(x: Affine) -> Affine:
    scale = number(ir.F32Type.get(), -1.0) if x.scale is None else arith.negf(x.scale)
    return Affine(scale, None if x.shift is None else arith.negf(x.shift))


def _product_and_sum(x: Any, y: Any, z: Any) -> Affine:
    return _sum(z, arith.mulf(x, y)) if isinstance(z, Affine) else _sum(product(x, y), z)


_RULES: Mapping[str, Callable[..., Affine | None]] = {
    "arith.addf": _sum,
    "arith.divf": _quotient,
    "arith.mulf": product,
    "arith.negf": _negated,
    "arith.subf": _difference,
    "math.fma": _product_and_sum,
}
"""What each op makes of its operands, one of which is an affine number."""
