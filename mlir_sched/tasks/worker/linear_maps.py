"""Affine maps as plain data."""

from __future__ import annotations

from typing import Any

from iree.compiler import ir

from mlir_sched.payload import LinearExpr


def linear_results(affine_map: Any) -> list[LinearExpr | None]:
    """Return each result of an affine map as coefficients over the map's dims; None for a result that is not linear."""
    return [_linear(expr, affine_map.n_dims) for expr in affine_map.results]


def _linear(expr: Any, dims: int) -> LinearExpr | None:
    if isinstance(expr, ir.AffineConstantExpr):
        return LinearExpr((0,) * dims, expr.value)
    if isinstance(expr, ir.AffineDimExpr):
        return LinearExpr(tuple(int(dim == expr.position) for dim in range(dims)))
    if isinstance(expr, ir.AffineAddExpr):
        return _add(_linear(expr.lhs, dims), _linear(expr.rhs, dims))
    if isinstance(expr, ir.AffineMulExpr):
        return _multiply(_linear(expr.lhs, dims), _linear(expr.rhs, dims))
    return None


def _add(lhs: LinearExpr | None, rhs: LinearExpr | None) -> LinearExpr | None:
    if lhs is None or rhs is None:
        return None
    coefficients = tuple(a + b for a, b in zip(lhs.coefficients, rhs.coefficients, strict=True))
    return LinearExpr(coefficients, lhs.constant + rhs.constant)


def _multiply(lhs: LinearExpr | None, rhs: LinearExpr | None) -> LinearExpr | None:
    if lhs is None or rhs is None:
        return None
    if rhs.dims:
        lhs, rhs = rhs, lhs
    if rhs.dims:
        return None
    return LinearExpr(tuple(c * rhs.constant for c in lhs.coefficients), lhs.constant * rhs.constant)
