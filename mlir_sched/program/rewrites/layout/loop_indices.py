"""Which values of a body are the index of a loop.

PyTorch's exporter writes ops that index an image by tensors with one tensor of indices per dim of the image; those of
batch and channel count up. An index below zero counts from the end.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.constant_values import scalar_constant
from mlir_sched.program.rewrites.layout.bodies import INDEX, Body
from mlir_sched.program.rewrites.linalg_ops import COLLAPSE, EXPAND, GENERIC, dim_of

LESS = 2
"""``slt`` of ``arith.cmpi``."""


def loop_at(body: Body, value: Any) -> int | None:
    """Return the loop whose index a value of a body is; None where it may be something else."""
    op = producer(value)
    if op is None:
        return _counted_loop(body, value)
    if op.name == "arith.select" and _is_below_zero(producer(op.operands[0]), op.operands[2]):
        return loop_at(body, op.operands[2])
    if op.name == "arith.index_cast":
        return loop_at(body, op.operands[0])
    return dim_of(op) if op.name == INDEX else None


def computes_range(op: Any) -> bool:
    """Say whether an op computes a tensor of one dim whose elements are 0, 1, 2 and so on, from loop indices."""
    if op.name != GENERIC or len(op.operands) != 1 or op.result.type.rank != 1:
        return False
    inside = Body(op).ops
    if [one.name for one in inside] != [INDEX, "arith.index_cast", "linalg.yield"]:
        return False
    return all(after.operands[0] == before.result for before, after in pairwise(inside))


def _counted_loop(body: Body, argument: Any) -> int | None:
    """Return the loop whose index an argument is: the operand counts up along its only large dim."""
    if argument not in body.arguments:
        return None
    number = body.arguments.index(argument)
    operand = body.op.operands[number]
    loops = [loop for loop, size in zip(body.places[number], operand.type.shape, strict=True) if size > 1]
    return loops[0] if len(loops) == 1 and _counts_up(operand) else None


def _counts_up(numbers: Any) -> bool:
    """Say whether a tensor, reshaped or not, has the elements 0, 1, 2 and so on."""
    op = producer(numbers)
    if op is None or op.name in (EXPAND, COLLAPSE):
        return op is not None and _counts_up(op.operands[0])
    if op.name != "arith.constant":
        return computes_range(op)
    value = op.attributes["value"]
    return isinstance(value, ir.DenseIntElementsAttr) and list(value) == list(range(len(value)))


def _is_below_zero(condition: Any, value: Any) -> bool:
    """Say whether an op, or None, says that an integer is negative."""
    if condition is None or condition.name != "arith.cmpi" or predicate_of(condition) != LESS:
        return False
    return condition.operands[0] == value and scalar_constant(condition.operands[1]) == 0


def predicate_of(compare: Any) -> int:
    """Return the predicate of an ``arith.cmpi``."""
    return int(ir.IntegerAttr(compare.attributes["predicate"]).value)
