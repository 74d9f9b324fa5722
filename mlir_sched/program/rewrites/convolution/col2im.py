"""The col2im of a transposed convolution: products of pixels and taps, summed where they meet in the result."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

from mlir_sched.program.rewrites.convolution.axis import Axis, Block
from mlir_sched.program.rewrites.linalg_ops import generic, index, zero


@dataclass(frozen=True)
class Products:
    """Products of a block of taps and pixels.

    Attributes:
        blocks: The taps and pixels, one block per spatial dimension.
        value: Tensor of dims (taps of every spatial dimension, batch, pixels of every spatial dimension, filters).
    """

    blocks: tuple[Block, ...]
    value: Any


@dataclass(frozen=True)
class _Operand:
    """The place in a block that one term of a result's sum reads along one dimension, and the conditions for it."""

    tap: Any
    pixel: Any
    conditions: tuple[Any, ...]


def col2im(axes: Sequence[Axis], products: Sequence[Products], init: Any) -> Any:
    """Return ``init`` plus, for every result, the sum of the products that belong to it.

    Every result gathers its terms, at most ``ceil(taps / stride)`` per dimension, so that each element is written once.

    Args:
        axes: The spatial dimensions.
        products: Blocks that together hold every product that is needed, none of them twice.
        init: Tensor of dims (batch, results of every spatial dimension, filters).
    """

    def body(total: Any) -> Any:
        batch, *results, channel = (linalg.IndexOp(dim).result for dim in range(len(axes) + 2))
        nothing = zero(init.type.element_type)
        for part in products:
            along = [_operands(*what) for what in zip(axes, part.blocks, results, strict=True)]
            for operands in product(*along):
                place = [*(o.tap for o in operands), batch, *(o.pixel for o in operands), channel]
                term = tensor.extract(part.value, place)
                conditions = [condition for operand in operands for condition in operand.conditions]
                if conditions:
                    term = arith.select(_all(conditions), term, nothing)
                total = arith.addf(total, term)
        return total

    rank = len(axes) + 2
    return generic([], init, [ir.AffineMap.get_identity(rank)], ["parallel"] * rank, body)


def _operands(axis: Axis, block: Block, result: Any) -> list[_Operand]:
    """Return the terms that a result may have in a block.

    With ``o + crop = stride * base + phase`` the terms are the pixels ``base - r`` with the taps of
    ``k = phase + stride * r``.
    """
    shifts = {axis.shift(tap) for tap in block.taps}
    turns = [r for r in range(-(-axis.taps // axis.stride)) if shifts & set(_shifts(axis, r))]
    if not turns:
        return []
    ahead = max(0, -(axis.crop // axis.stride))  # keeps the dividend from being negative
    place = _plus(result, axis.crop + ahead * axis.stride)
    phase, base = arith.remui(place, index(axis.stride)), arith.divui(place, index(axis.stride))
    found = []
    for r in turns:
        shift = _plus(phase, r * axis.stride)
        tap = arith.subi(index(axis.taps - 1), shift) if axis.mirrored else shift
        needed = not set(_shifts(axis, r)) <= shifts
        tap, of_tap = _within(tap, block.taps, needed)
        pixel, of_pixel = _within(_plus(base, -r - ahead), block.pixels, True)
        found.append(_Operand(tap, pixel, of_tap + of_pixel))
    return found


def _shifts(axis: Axis, r: int) -> range:
    return range(r * axis.stride, (r + 1) * axis.stride)


def _within(value: Any, run: range, check: bool) -> tuple[Any, tuple[Any, ...]]:
    """Return a value's offset from the start of a run, 0 when it is outside, and, if checked, whether it is inside."""
    local = _plus(value, -run.start)
    if not check:
        return local, ()
    inside = arith.cmpi(arith.CmpIPredicate.ult, local, index(len(run)))
    return arith.select(inside, local, index(0)), (inside,)


def _plus(value: Any, number: int) -> Any:
    return arith.addi(value, index(number)) if number else value


def _all(conditions: Sequence[Any]) -> Any:
    result, *others = conditions
    for other in others:
        result = arith.andi(result, other)
    return result
