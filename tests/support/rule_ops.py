"""Ops and dispatches as plain data, for tests of what is derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mlir_sched.payload import Dispatch, LinalgOp, LinearExpr, Operand, OpKind, TensorSpec


def operand(
    element_type: str, shape: tuple[int, ...], dims: Sequence[int], loops: int, producer: int | None = None
) -> Operand:
    exprs = tuple(LinearExpr(tuple(int(i == dim) for i in range(loops))) for dim in dims)
    return Operand(TensorSpec(shape, element_type), exprs, producer)


def fill(element_type: str, shape: tuple[int, ...]) -> LinalgOp:
    out = operand(element_type, shape, range(len(shape)), len(shape))
    return LinalgOp(0, "linalg.fill", OpKind.FILL, ("parallel",) * len(shape), shape, (), (out,), ())


def matmul(
    k: int,
    element_type: str = "f32",
    accumulator: str | None = None,
    body: tuple[str, ...] = ("arith.mulf", "arith.addf"),
    m: int = 8,
    n: int = 16,
) -> LinalgOp:
    accumulator = accumulator or element_type
    return LinalgOp(
        1,
        "linalg.matmul",
        OpKind.CONTRACTION,
        ("parallel", "parallel", "reduction"),
        (m, n, k),
        (operand(element_type, (m, k), (0, 2), 3), operand(element_type, (k, n), (2, 1), 3)),
        (operand(accumulator, (m, n), (0, 1), 3, producer=0),),
        body,
    )


def contraction(extents: Mapping[str, int], maps: tuple[str, str, str]) -> LinalgOp:
    """Return a contraction as a generic on f32.

    Args:
        extents: Trip count per loop, named by one letter, in the order of the loops.
        maps: The loops of both inputs and of the result.
    """
    loops = tuple(extents)
    operands = [
        operand("f32", tuple(extents[loop] for loop in dims), [loops.index(loop) for loop in dims], len(loops))
        for dims in maps
    ]
    return LinalgOp(
        1,
        "linalg.generic",
        OpKind.CONTRACTION,
        tuple("parallel" if loop in maps[2] else "reduction" for loop in loops),
        tuple(extents.values()),
        tuple(operands[:2]),
        (replace(operands[2], producer=0),),
        ("arith.mulf", "arith.addf"),
    )


def epilogue(element_type: str, body: tuple[str, ...], m: int = 8, n: int = 16, read: str | None = None) -> LinalgOp:
    tensors = operand(read or element_type, (m, n), (0, 1), 2, producer=1), operand(element_type, (m, n), (0, 1), 2)
    return LinalgOp(2, "linalg.generic", OpKind.ELEMENTWISE, ("parallel",) * 2, (m, n), tensors[:1], tensors[1:], body)


def dispatch(*ops: LinalgOp) -> Dispatch:
    return Dispatch((fill(ops[0].outputs[0].tensor.element_type, ops[0].outputs[0].tensor.shape), *ops), (len(ops),))
