"""Linear ops with constant weights: sums of products, such as convolutions of every kind and products of matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import linalg

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.constant_values import is_constant, scalar_constant
from mlir_sched.program.rewrites.convolution_ops import is_static_f32

INIT = 2
"""Which operand of a linear op its sums start with: the last one, behind the two factors."""


@dataclass(frozen=True)
class Linear:
    """A linear op.

    Attributes:
        op: The op; its operands are two factors and what the sums start with.
        weights: Which operand is constant, 0 or 1.
        channels: The dimension of the weights that goes along with a dimension of the result, for those that have one.
    """

    op: Any
    weights: int
    channels: Mapping[int, int]

    def fits(self, sizes: list[int]) -> bool:
        """Say whether the weights may be multiplied by a factor of the results.

        Args:
            sizes: Elements of the factor along every dimension of the result.
        """
        return all(size == 1 or dim in self.channels for dim, size in enumerate(sizes))


def linear(op: Any, globals_: frozenset[str]) -> Linear | None:
    """Return an op as a linear op of static f32 tensors with constant weights; None for any other op.

    Args:
        op: The op.
        globals_: Symbols of the globals that are never written.
    """
    if not _multiplies_and_adds(op) or not all(map(is_static_f32, op.operands)):
        return None
    constant = [place for place in range(INIT) if is_constant(_source(op.operands[place]), globals_)]
    maps = [ir.AffineMapAttr(each).value for each in linalg.get_indexing_maps(op) or ()]
    if len(constant) != 1 or len(maps) != INIT + 1:
        return None
    weights, result = loops_of(maps[constant[0]]), loops_of(maps[INIT])
    if weights is None or result is None:
        return None
    channels = {dim: weights.index(loop) for dim, loop in enumerate(result) if loop in weights}
    return Linear(op, constant[0], channels)


def loops_of(map_: ir.AffineMap) -> list[int] | None:
    """Return the loop that walks each dimension of an operand; None where one walks along sums or constants."""
    if not all(isinstance(expr, ir.AffineDimExpr) for expr in map_.results):
        return None
    return [ir.AffineDimExpr(expr).position for expr in map_.results]


def source_loops(op: Any) -> list[int] | None:
    """Return which dimension of its result an op repeats each dimension of its only input along, or moves it to.

    Returns:
        None for an op that does anything else than to copy elements.
    """
    if not op.name.startswith("linalg.") or len(op.operands) != 2 or len(op.results) != 1:
        return None
    (*inner, end), maps = op.regions[0].blocks[0], linalg.get_indexing_maps(op)
    if inner or maps is None or end.operation.operands[0] != op.regions[0].blocks[0].arguments[0]:
        return None
    source, result = (ir.AffineMapAttr(each).value for each in maps)
    loops = loops_of(source)
    if loops is None or len({*loops}) < len(loops) or result != ir.AffineMap.get_identity(result.n_dims):
        return None
    return loops


def starts_with_zeros(op: Any) -> bool:
    """Say whether the sums of a linear op start with zeros."""
    fill = producer(op.operands[INIT])
    return fill is not None and fill.name == "linalg.fill" and scalar_constant(fill.operands[0]) == 0


def _source(value: Any) -> Any:
    """Return what a value is a copy of, repeated or transposed."""
    op = producer(value)
    return value if op is None or source_loops(op) is None else _source(op.operands[0])


def _multiplies_and_adds(op: Any) -> bool:
    """Say whether an op on tensors adds products of elements of its two factors."""
    if not op.name.startswith("linalg.") or len(op.operands) != INIT + 1 or len(op.results) != 1:
        return False
    left, right, total = op.regions[0].blocks[0].arguments
    inner = [one.operation for one in op.regions[0].blocks[0]]
    if [one.name for one in inner] != ["arith.mulf", "arith.addf", "linalg.yield"]:
        return False
    product, added, end = inner
    operands = {*product.operands} == {left, right} and {*added.operands} == {product.result, total}
    return operands and end.operands[0] == added.result
