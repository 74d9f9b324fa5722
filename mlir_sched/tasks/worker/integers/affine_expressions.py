"""The results of affine maps as expressions."""

from collections.abc import Sequence
from typing import Any

from iree.compiler import ir

from mlir_sched.tasks.worker.integers.index_expressions import Computed, Constant, Expression
from mlir_sched.tasks.worker.integers.intervals import INDEX_BITS

_OPERATIONS = (
    (ir.AffineAddExpr, "arith.addi"),
    (ir.AffineMulExpr, "arith.muli"),
    (ir.AffineModExpr, "affine.mod"),
    (ir.AffineFloorDivExpr, "arith.floordivsi"),
    (ir.AffineCeilDivExpr, "arith.ceildivsi"),
)


def affine_results(op: Any, operands: Sequence[Expression]) -> list[Expression]:
    """Return the results of the map of an ``affine.apply``, ``affine.min`` or ``affine.max``, given its operands."""
    affine_map = ir.AffineMapAttr(op.attributes["map"]).value
    return [_read(result, operands, affine_map.n_dims) for result in affine_map.results]


def _read(expression: Any, operands: Sequence[Expression], dims: int) -> Expression:
    if isinstance(expression, ir.AffineConstantExpr):
        return Constant((expression.value, expression.value))
    if isinstance(expression, ir.AffineDimExpr | ir.AffineSymbolExpr):
        position: int = expression.position
        return operands[position if isinstance(expression, ir.AffineDimExpr) else dims + position]
    (name,) = [name for kind, name in _OPERATIONS if isinstance(expression, kind)]
    sides = tuple(_read(side, operands, dims) for side in (expression.lhs, expression.rhs))
    return Computed(name, sides, INDEX_BITS, INDEX_BITS)
