"""Bodies of element-wise ops as affine functions of one number: ``scale * x + shift``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith

from mlir_sched.compiler.operations import captured, constant_of, producer
from mlir_sched.program.rewrites.linalg_ops import copied, number

Make = Callable[..., Any]
"""Makes a scalar, given a builder of scalars and what the builder takes."""
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


def emitted(build: Callable[..., Any], *given: Any) -> Any:
    """Return a scalar that a builder emits at the current insertion point."""
    return build(*given)


def noted(build: Callable[..., Any], *given: Any) -> bool:  # noqa: ARG001 - as of emitted
    """Note that there is a scalar, for those who need not know which one."""
    return True


def applied(op: Any, place: int, x: Affine, scalars: Mapping[int, Any], make: Make = emitted) -> Affine | None:
    """Return what the body of an element-wise op makes of an affine number.

    Args:
        op: The op.
        place: Which of its operands is the number.
        x: The number.
        scalars: What stands for the other operands that the body may read, by their places; constants from outside
            of the body are copied.
        make: Makes the scalars.

    Returns:
        None where the result is no affine function of the number, or depends on anything else.
    """
    *inner, end = [one.operation for one in op.regions[0].blocks[0]]
    arguments = op.regions[0].blocks[0].arguments
    known: dict[Any, Any] = {arguments[each]: scalar for each, scalar in scalars.items()} | {arguments[place]: x}
    constants = [each for each in captured(op) if isinstance(each.type, ir.F32Type) and constant_of(each) is not None]
    known |= {value: make(_copy, producer(value)) for value in constants}
    for one in inner:
        operands = [known.get(value) for value in one.operands]
        made = None if any(operand is None for operand in operands) else _made(one, operands, make)
        if made is None:
            return None
        known[one.result] = made
    found = known.get(end.operands[0])
    return found if isinstance(found, Affine) else None


def product(make: Make, x: Any, y: Any) -> Affine:
    """Return the product of an affine number and a scalar, in either order."""
    form, other = (x, y) if isinstance(x, Affine) else (y, x)
    scale = other if form.scale is None else make(arith.mulf, form.scale, other)
    return Affine(scale, None if form.shift is None else make(arith.mulf, form.shift, other))


def _made(op: Any, operands: Sequence[Any], make: Make) -> Any:
    """Return what a scalar op makes of scalars and at most one affine number; None where that is not known."""
    forms = sum(isinstance(operand, Affine) for operand in operands)
    if forms == 0:
        plain = op.name.startswith(_SCALAR_OPS) and len(op.results) == 1 and not len(op.regions)
        return make(_copy, op, *operands) if plain else None
    return _RULES[op.name](make, *operands) if forms == 1 and op.name in _RULES else None


def _copy(op: Any, *operands: Any) -> Any:
    return copied(op, operands).result


def _inverse(x: Any) -> Any:
    return arith.divf(number(x.type, 1.0), x)


def _sum(make: Make, x: Any, y: Any) -> Affine:
    form, other = (x, y) if isinstance(x, Affine) else (y, x)
    return Affine(form.scale, other if form.shift is None else make(arith.addf, form.shift, other))


def _difference(make: Make, x: Any, y: Any) -> Affine:
    if isinstance(y, Affine):
        return _sum(make, _negated(make, y), x)
    return Affine(x.scale, make(arith.negf, y) if x.shift is None else make(arith.subf, x.shift, y))


def _quotient(make: Make, x: Any, y: Any) -> Affine | None:
    if isinstance(y, Affine):
        return None
    scale = make(_inverse, y) if x.scale is None else make(arith.divf, x.scale, y)
    return Affine(scale, None if x.shift is None else make(arith.divf, x.shift, y))


def _negated(make: Make, x: Affine) -> Affine:
    scale = make(number, ir.F32Type.get(), -1.0) if x.scale is None else make(arith.negf, x.scale)
    return Affine(scale, None if x.shift is None else make(arith.negf, x.shift))


def _product_and_sum(make: Make, x: Any, y: Any, z: Any) -> Affine:
    if isinstance(z, Affine):
        return _sum(make, z, make(arith.mulf, x, y))
    return _sum(make, product(make, x, y), z)


_RULES: Mapping[str, Callable[..., Affine | None]] = {
    "arith.addf": _sum,
    "arith.divf": _quotient,
    "arith.mulf": product,
    "arith.negf": _negated,
    "arith.subf": _difference,
    "math.fma": _product_and_sum,
}
"""What each op makes of its operands, one of which is an affine number, given what makes scalars."""
