"""Ops each of whose results is made of one element of what they read, in the row-major order of both."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import captures_constants_alone, producer
from mlir_sched.program.rewrites.convolution_ops import is_static_f32
from mlir_sched.program.rewrites.linalg_ops import COLLAPSE, EXPAND, SLICE, counts, is_elementwise, maps_of, region_of


@dataclass(frozen=True)
class ElementRun:
    """Adjacent elements of a value in row-major order, or the only one that it has.

    Attributes:
        value: The value.
        first: The number of the first element, but for what varies.
        varying: Values of the program, each with how many elements one step of it moves the first element on.
    """

    value: Any
    first: int
    varying: tuple[tuple[Any, int], ...] = ()

    @property
    def is_single(self) -> bool:
        """Whether the value has one element."""
        return size_of(self.value) == 1


def size_of(value: Any) -> int:
    """Return the number of elements of a value."""
    return prod(value.type.shape)


def is_flat(op: Any) -> bool:
    """Say whether each of several results of an op is an element that it reads (:func:`moved`), or made of such."""
    is_one = len(op.results) == 1 and moved(op, 0) is not None
    return (is_one or is_flat_elementwise(op)) and size_of(op.results[0]) > 1


def moved(op: Any, first: int) -> ElementRun | None:
    """Return the run that a run of an op's result is, in what the op reads.

    Args:
        op: The op.
        first: The number of the first element of the run.

    Returns:
        None for an op that does anything else than to take a run.
    """
    if op.name not in (COLLAPSE, EXPAND, SLICE) or not all(map(is_static_f32, (op.operands[0], op.results[0]))):
        return None
    if op.name != SLICE:
        return ElementRun(op.operands[0], first)
    offsets, sizes, strides = region_of(op)
    shape, unknown = list(op.operands[0].type.shape), ir.ShapedType.get_dynamic_stride_or_offset()
    whole = next((dim for dim, size in enumerate(sizes) if size > 1), len(sizes)) + 1
    if len(op.operands) > 1 + offsets.count(unknown) or {*strides} != {1} or sizes[whole:] != shape[whole:]:
        return None
    steps = [prod(shape[dim + 1 :]) for dim in range(len(shape))]
    known = sum(offset * step for offset, step in zip(offsets, steps, strict=True) if offset != unknown)
    varying = (step for offset, step in zip(offsets, steps, strict=True) if offset == unknown)
    return ElementRun(op.operands[0], first + known, tuple(zip(list(op.operands)[1:], varying, strict=True)))


def is_flat_elementwise(op: Any) -> bool:
    """Say whether an op computes each element of single elements alone, those of one number and single values."""
    if not is_elementwise(op) or not all(map(is_static_f32, op.operands)) or counts(op):
        return False
    *maps, result = maps_of(op)
    *_, start = op.regions[0].blocks[0].arguments
    loops = _longer(result, op.results[0])
    read = zip(maps, list(op.operands)[:-1], strict=True)
    alike = all(size_of(value) == 1 or _longer(map_, value) == loops for map_, value in read)
    return alike and not [*start.uses] and captures_constants_alone(op)


def read_by(run: ElementRun) -> list[ElementRun]:
    """Return the runs that a run of the result of a flat op (:func:`is_flat`) is computed from."""
    op = producer(run.value)
    source = moved(op, run.first)
    if source is not None:
        return [ElementRun(source.value, source.first, (*run.varying, *source.varying))]
    return [
        ElementRun(value, *((0,) if size_of(value) == 1 else (run.first, run.varying)))
        for value in list(op.operands)[:-1]
    ]


def _longer(map_: ir.AffineMap, value: Any) -> list[ir.AffineExpr]:
    """Return how the dimensions of more than one element are walked."""
    return [expr for expr, size in zip(map_.results, value.type.shape, strict=True) if size > 1]
