"""Operands of element-wise ops as factors of the result."""

from __future__ import annotations

from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import linalg


def factor_sizes(op: Any, place: int) -> list[int] | None:
    """Return the sizes of an operand as a factor of an element-wise op's result (:mod:`.moves`); None for no factor."""
    map_ = ir.AffineMapAttr(linalg.get_indexing_maps(op)[place]).value
    sizes, last = [1] * map_.n_dims, -1
    for expr, size in zip(map_.results, op.operands[place].type.shape, strict=True):
        if size == 1:
            continue
        if not isinstance(expr, ir.AffineDimExpr) or (dim := ir.AffineDimExpr(expr).position) <= last:
            return None
        sizes[dim], last = size, dim
    return sizes
