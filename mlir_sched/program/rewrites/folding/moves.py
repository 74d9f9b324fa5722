"""Ops that only move the elements of a tensor, or surround them by zeros, and what they do to a factor of the tensor.

A factor has as many dimensions as the tensor: along each of them as many elements, or one for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import tensor

from mlir_sched.program.rewrites.folding.linear import source_loops
from mlir_sched.program.rewrites.linalg_ops import COLLAPSE, EXPAND, collapse, copied, expand, transposed
from mlir_sched.program.rewrites.padding.tensor_pad import padded_alike, pads_with_zeros, sides_of


def is_move(op: Any) -> bool:
    """Say whether an op only moves the elements of a tensor, each to one place."""
    if op.name in (COLLAPSE, EXPAND):
        return True
    loops = source_loops(op)
    return loops is not None and len(loops) == len(op.results[0].type.shape)


def moved_sizes(op: Any, sizes: Sequence[int], *, back: bool = False) -> list[int] | None:
    """Return the sizes of a factor behind a move, or in front of it; None where it is a factor there no longer.

    Args:
        op: The move.
        sizes: Sizes of the factor of the op's input, or of its result.
        back: Whether the factor is one of the result.
    """
    if pads_with_zeros(op):
        padded = map(sum, zip(*sides_of(op), strict=True))
        return None if any(size > 1 and width for size, width in zip(sizes, padded, strict=True)) else [*sizes]
    if op.name not in (COLLAPSE, EXPAND):
        order = source_loops(op) or []
        return [sizes[dim] for dim in order] if back else [sizes[order.index(dim)] for dim in range(len(order))]
    shapes = op.operands[0].type.shape, op.result.type.shape
    split = shapes[0] if op.name == COLLAPSE else shapes[1]
    found = list[int]()
    for merged, dims in enumerate(_groups(op)):
        parts = [split[dim] for dim in dims]
        own = [sizes[dim] for dim in dims] if _merges(op, back=back) else [sizes[merged]]
        if prod(own) not in (1, prod(parts)):
            return None
        found += [prod(own)] if _merges(op, back=back) else parts if prod(own) > 1 else [1] * len(parts)
    return found


def moved(op: Any, factor: Any, *, back: bool = False) -> Any:
    """Return a factor behind a move, or in front of it, where it is one there; arguments as of :func:`moved_sizes`."""
    if pads_with_zeros(op):
        return factor
    if op.name not in (COLLAPSE, EXPAND):
        order = source_loops(op) or []
        return transposed(factor, order if back else [order.index(dim) for dim in range(len(order))])
    if _merges(op, back=back):
        return collapse(factor, _groups(op))
    return expand(factor, _groups(op), moved_sizes(op, factor.type.shape, back=back) or [])


def repeated(op: Any, value: Any) -> Any:
    """Return a move, padding, or another copy, of another value."""
    if pads_with_zeros(op):
        return padded_alike(value, op)
    if op.name in (COLLAPSE, EXPAND):
        return copied(op, [value]).result
    kind = op.results[0].type
    return copied(op, [value, tensor.empty(kind.shape, kind.element_type)]).results[0]


def _merges(op: Any, *, back: bool) -> bool:
    """Say whether a reshape, or its inverse, makes one dimension of several."""
    return bool(op.name == COLLAPSE) != back


def _groups(op: Any) -> list[list[int]]:
    """Return which dimensions a reshape makes one, or which it makes of each."""
    return [[ir.IntegerAttr(dim).value for dim in ir.ArrayAttr(group)] for group in op.attributes["reassociation"]]
