"""Ops with a loop per dim: element-wise ops, broadcasts and reductions. Their loops are reordered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import linalg, tensor

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.layout.bodies import GENERIC, INDEX, Body
from mlir_sched.program.rewrites.layout.channel_dims import Form
from mlir_sched.program.rewrites.layout.rule import Axes, Orders, Rule, in_order
from mlir_sched.program.rewrites.linalg_ops import copied, generic, maps_of

_SCALAR = ("arith.", "math.", INDEX)


class Loops(Rule):
    """``linalg.generic`` whose operands are read at loops and zeros: element-wise, broadcast, or one value reduced."""

    names = (GENERIC,)
    effect = "keeps the channels of what it reads (element-wise, broadcast, reduction of one value)"
    form = Form.ANY

    def fits(self, op: Any) -> bool:
        """Say whether the op computes with scalars of static tensors alone, at loops and zeros."""
        kinds = [value.type for value in op.operands]
        static = all(isinstance(kind, ir.RankedTensorType) and kind.has_static_shape for kind in kinds)
        if not static or not all(_is_loop_or_zero(expr) for each in maps_of(op) for expr in each.results):
            return False
        body = Body(op)
        made = [producer(value) for value in body.values if producer(value) is not None]
        scalar = all(one.name.startswith(_SCALAR) and len(one.results) == 1 for one in made)
        return scalar and bool(body.made) and len(_reduced(op)) <= 1

    def axes(self, op: Any) -> list[Axes]:
        """Return the loops that the dims are read at."""
        loops = [[expr.position if _is_loop(expr) else None for expr in each.results] for each in maps_of(op)]
        return [*loops, loops[-1]]

    def key(self, op: Any) -> tuple[Any, ...]:
        """Return what a script sees of the op."""
        return Body(op).matched

    def kind(self, op: Any) -> tuple[Any, ...]:
        """Return also which operands and loops the values of the body are."""
        return Body(op).kind

    def family(self, op: Any) -> tuple[Any, ...]:
        """Return the form of the op without its body."""
        return Body(op).form

    def covers(self, op: Any, other: Any) -> bool:
        """Say whether a part of the other body is as this one."""
        return Body(op).covers(Body(other))

    def steps(self, op: Any) -> int:
        """Return how many ops compute an element."""
        return len(Body(op).made)

    def match(self, root: Any, op: Any) -> None:
        """Emit the comparison of the body."""
        Body(op).match(root)

    def find(self, found: Any, op: Any) -> Any:
        """Emit a handle on the ops with such bodies that have the maps and loops of this one."""
        return Body(op).find(found)

    def build(self, op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
        """Return the op with its loops in the order of its result, those that it reduces behind them."""
        maps = [
            in_order(list(each.results), orders(value)) for value, each in zip(op.operands, maps_of(op), strict=True)
        ]
        made = [expr.position for expr in maps[-1] if _is_loop(expr)]
        loops = [*made, *(loop for loop in range(len(_kinds(op))) if loop not in made)]
        place = {loop: number for number, loop in enumerate(loops)}
        moved = [ir.AffineMap.get(len(loops), 0, [_moved(expr, place) for expr in each]) for each in maps]
        kinds, kind = [_kinds(op)[loop] for loop in loops], op.result.type
        *values, start = inputs
        if not list(Body(op).block.arguments[len(values)].uses):
            start = tensor.empty(in_order(kind.shape, orders(op.result)), kind.element_type)
        return generic(values, start, moved, kinds, lambda *each: _element(Body(op), each, place))


def _element(body: Body, scalars: Sequence[Any], place: Mapping[int, int]) -> Any:
    """Return what a body makes of scalars, with the loops in other places."""
    made = dict(zip(body.block.arguments, scalars, strict=True))
    for value in body.values:
        op = producer(value)
        if op is not None and op.name == INDEX:
            made[value] = linalg.IndexOp(place[ir.IntegerAttr(op.attributes["dim"]).value]).result
        elif op is not None:
            made[value] = copied(op, [made[operand] for operand in op.operands]).results[0]
    return made[body.element]


def _reduced(op: Any) -> list[Any]:
    """Return the maps of operands, apart from the result's, that are read at loops which are reduced."""
    loops = {loop for loop, kind in enumerate(_kinds(op)) if kind == "reduction"}
    return [
        each for each in maps_of(op)[:-1] if any(_is_loop(expr) and expr.position in loops for expr in each.results)
    ]


def _kinds(op: Any) -> list[str]:
    """Return the iterator types of a generic op."""
    return ["reduction" if "reduction" in str(kind) else "parallel" for kind in op.attributes["iterator_types"]]


def _is_loop(expr: Any) -> bool:
    return isinstance(expr, ir.AffineDimExpr)


def _is_loop_or_zero(expr: Any) -> bool:
    return _is_loop(expr) or (isinstance(expr, ir.AffineConstantExpr) and expr.value == 0)


def _moved(expr: Any, place: Mapping[int, int]) -> Any:
    """Return a loop, or a zero, with the loops in other places."""
    return ir.AffineExpr.get_dim(place[expr.position]) if _is_loop(expr) else expr
