"""Ops that only move, repeat or drop elements of a tensor, or surround them by zeros, and what they do to a factor.

A factor has as many dimensions as the tensor: along each of them as many elements, or one for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from iree.compiler.dialects import tensor

from mlir_sched.compiler.operations import only_use, producer
from mlir_sched.program.rewrites.linalg_ops import (
    CAST,
    COLLAPSE,
    CONCAT,
    EXPAND,
    SLICE,
    collapse,
    copied,
    expand,
    groups_of,
    loops_of,
    maps_of,
    numbers_of,
    slice_of,
    transposed,
    with_unit_dims,
)
from mlir_sched.program.rewrites.linear.linear_op import is_copy, source_loops
from mlir_sched.program.rewrites.padding.tensor_pad import padded_alike, pads_with_zeros, sides_of


def is_move(op: Any) -> bool:
    """Say whether every element of an op's result is one of a tensor that the op reads."""
    return op.name in (COLLAPSE, EXPAND) or is_part(op) or is_rotation(op) or is_copy(op)


def factor_sizes(op: Any, place: int) -> list[int] | None:
    """Return the sizes of an operand as a factor of an element-wise op's result; None for no factor."""
    map_, last = maps_of(op)[place], -1
    sizes = [1] * map_.n_dims
    for dim, size in zip(loops_of(map_), op.operands[place].type.shape, strict=True):
        if size == 1:
            continue
        if dim is None or dim <= last:
            return None
        sizes[dim], last = size, dim
    return sizes


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
    if is_part(op):
        return _sizes_of_part(op, sizes, back=back)
    if is_rotation(op):
        turned = [part.result.type.shape for part, _ in rotated(op)]
        wholes = zip(sizes, op.results[0].type.shape, *turned, strict=True)
        return None if any(size > 1 and {*each} != {size} for size, *each in wholes) else [*sizes]
    if op.name not in (COLLAPSE, EXPAND):
        return _copied_sizes(op, sizes, back=back)
    shapes = op.operands[0].type.shape, op.result.type.shape
    split = shapes[0] if op.name == COLLAPSE else shapes[1]
    found = list[int]()
    for merged, dims in enumerate(groups_of(op)):
        parts = [split[dim] for dim in dims]
        own = [sizes[dim] for dim in dims] if _merges(op, back=back) else [sizes[merged]]
        if prod(own) not in (1, prod(parts)):
            return None
        found += [prod(own)] if _merges(op, back=back) else parts if prod(own) > 1 else [1] * len(parts)
    return found


def moved(op: Any, factor: Any, *, back: bool = False) -> Any:
    """Return a factor behind a move, or in front of it, where it is one there; arguments as of :func:`moved_sizes`."""
    if pads_with_zeros(op) or is_rotation(op):
        return factor
    sizes = moved_sizes(op, factor.type.shape, back=back) or []
    if is_part(op):
        offsets = zip(numbers_of(op, "static_offsets"), factor.type.shape, strict=True)
        begin = [at if size > 1 else 0 for at, size in offsets]
        return slice_of(factor, begin, sizes)
    if op.name not in (COLLAPSE, EXPAND):
        loops = source_loops(op) or []
        order = sorted(range(len(loops)), key=loops.__getitem__)
        if not back:
            return with_unit_dims(transposed(factor, order), sizes)
        kept = with_unit_dims(factor, [factor.type.shape[dim] for dim in sorted(loops)])
        return transposed(kept, [order.index(dim) for dim in range(len(loops))])
    if _merges(op, back=back):
        return collapse(factor, groups_of(op))
    return expand(factor, groups_of(op), sizes)


def repeated(op: Any, value: Any) -> Any:
    """Return a move, padding, or another copy, of another value."""
    if pads_with_zeros(op):
        return padded_alike(value, op)
    if op.name in (COLLAPSE, EXPAND, SLICE):
        return copied(op, [value]).result
    if is_rotation(op):
        parts = [(copied(part, [value]).result, cast) for part, cast in rotated(op)]
        return copied(op, [part if cast is None else copied(cast, [part]).result for part, cast in parts]).result
    kind = op.results[0].type
    return copied(op, [value, tensor.empty(kind.shape, kind.element_type)]).results[0]


def is_part(op: Any) -> bool:
    """Say whether an op takes a part of a tensor whose place is known, with all dimensions and no steps between."""
    if op.name != SLICE or len(op.operands) != 1 or op.result.type.rank != op.operands[0].type.rank:
        return False
    return {*numbers_of(op, "static_strides")} <= {1}


def is_rotation(op: Any) -> bool:
    """Say whether an op joins parts of one tensor that nothing else reads, as where windows are shifted."""
    made = rotated(op) if op.name == CONCAT else []
    if not made or not all(part is not None and is_part(part) for part, _ in made):
        return False
    passed = [each for pair in made for each in pair if each is not None]
    return len({part.operands[0] for part, _ in made}) == 1 and all(only_use(each.result) for each in passed)


def rotated(op: Any) -> list[tuple[Any, Any]]:
    """Return what makes each tensor that an op joins, and its cast to an unknown size, None where there is none.

    A rotation by a number of rows that is known late is exported with such casts.
    """
    made = [producer(value) for value in op.operands]
    cast = [each if each is not None and each.name == CAST else None for each in made]
    return [(op if of is None else producer(of.operands[0]), of) for op, of in zip(made, cast, strict=True)]


def _sizes_of_part(op: Any, sizes: Sequence[int], *, back: bool) -> list[int] | None:
    """Return the sizes of a factor of a part, or of the whole: one of the whole lies along no dimension that is cut."""
    shapes = op.operands[0].type.shape, op.result.type.shape
    dims = [*zip(sizes, *shapes, strict=True)]
    if back:
        return None if any(size > 1 and whole > part for size, whole, part in dims) else [*sizes]
    return [part if size > 1 else 1 for size, _, part in dims]


def _copied_sizes(op: Any, sizes: Sequence[int], *, back: bool) -> list[int] | None:
    """Return the sizes of a factor of a copy, or of what it is a copy of: one of that lies along none of its loops."""
    loops = source_loops(op) or []
    dims = range(op.results[0].type.rank)
    if not back:
        return [sizes[loops.index(dim)] if dim in loops else 1 for dim in dims]
    return None if any(sizes[dim] > 1 for dim in dims if dim not in loops) else [sizes[dim] for dim in loops]


def _merges(op: Any, *, back: bool) -> bool:
    """Say whether a reshape, or its inverse, makes one dimension of several."""
    return bool(op.name == COLLAPSE) != back
