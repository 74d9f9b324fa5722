"""Ops with a loop per dim: element-wise ops, broadcasts, reductions and gathers. Their loops are reordered.

PyTorch's exporter writes interpolations, and other ops that index an image by tensors, as bodies that read elements of
the image at computed places. IREE 3.13 reads them one by one. With channels last the elements of a pixel are adjacent,
and MLIR's vectorizer reads vectors of them (``vectorizeTensorExtract`` in Vectorization.cpp), provided that the other
indices stay the same along the vector. It sees that they do where the body reads them from tensors, but not where they
are operands; so the body reads the tensors of indices, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import linalg, tensor

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.layout.bodies import EXTRACT, INDEX, Body, is_loop
from mlir_sched.program.rewrites.layout.channel_dims import Form
from mlir_sched.program.rewrites.layout.loop_indices import loop_at
from mlir_sched.program.rewrites.layout.rule import Axes, Orders, Rule, in_order
from mlir_sched.program.rewrites.linalg_ops import GENERIC, copied, generic, index, maps_of


class Loops(Rule):
    """``linalg.generic`` whose operands are read at loops and zeros: element-wise, broadcast, or one value reduced."""

    names = (GENERIC,)
    effect = "keeps the channels of what it reads: element-wise, broadcast, reduction of one value, gather of pixels"
    form = Form.ANY

    def fits(self, op: Any) -> bool:
        """Say whether the op computes with scalars of static tensors alone, at loops and zeros."""
        body = Body(op)
        return body.is_plain and len(_reduced(body)) <= (0 if body.reads else 1)

    def inputs(self, op: Any) -> list[Any]:
        """Return the operands, and what the body reads elements of."""
        return Body(op).inputs

    def axes(self, op: Any) -> list[Axes]:
        """Return the loops that the dims are read at."""
        body = Body(op)
        loops = [[expr.position if is_loop(expr) else None for expr in each.results] for each in maps_of(op)]
        places = {read.operands[0]: list(read.operands)[1:] for read in reversed(body.reads)}
        return [*loops, *([loop_at(body, at) for at in places[each]] for each in body.tensors), loops[-1]]

    def marked(self, op: Any, result: Any) -> Any:
        """Return a gather; other ops are fused."""
        return producer(result) if Body(op).reads else None

    def kind(self, op: Any) -> tuple[Any, ...]:
        """Return form, types and body, and the loops that are read at."""
        return *Body(op).kind, *map(tuple, self.axes(op))

    def match(self, root: Any, op: Any) -> None:
        """Emit the comparison of form, types and body."""
        Body(op).match(root)

    def handles(self, handle: Any, op: Any) -> list[Any]:
        """Emit handles on the operands, and on what the body reads elements of."""
        return Body(op).handles(handle)

    def build(self, op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
        """Return the op with its loops in the order of its result, those that it reduces behind them."""
        body = Body(op)
        maps = [in_order(list(each.results), orders(v)) for v, each in zip(op.operands, maps_of(op), strict=True)]
        made = [expr.position for expr in maps[-1] if is_loop(expr)]
        loops = [*made, *(loop for loop in range(len(body.iterators)) if loop not in made)]
        place = {loop: number for number, loop in enumerate(loops)}
        moved = [ir.AffineMap.get(len(loops), 0, [_moved(expr, place) for expr in each]) for each in maps]
        *values, start = inputs[: len(maps)]
        if not list(body.arguments[-1].uses):
            start = tensor.empty(in_order(op.result.type.shape, orders(op.result)), op.result.type.element_type)
        kept = [number for number in range(len(values)) if not (body.reads and _is_integer(values[number]))]
        given = [body.arguments[number] for number in (*kept, -1)]
        kinds = [body.iterators[loop] for loop in loops]

        def element(*scalars: Any) -> Any:
            indices = {body.arguments[n]: _read(values[n], moved[n]) for n in range(len(values)) if n not in kept}
            tensors = zip(body.tensors, inputs[len(maps) :], strict=True)
            return _element(body, {**dict(tensors), **indices, **dict(zip(given, scalars, strict=True))}, place, orders)

        return generic([values[n] for n in kept], start, [moved[n] for n in (*kept, -1)], kinds, element)


def _element(body: Body, made: dict[Any, Any], place: Mapping[int, int], orders: Orders) -> Any:
    """Return an element, given arguments and tensors, with the loops in other places."""
    for value in body.values:
        op = producer(value)
        if value in made:
            continue
        if op.name == INDEX:
            made[value] = _index(place[loop_at(body, value) or 0])
        elif op.name == EXTRACT:
            source, *places = op.operands
            loops = [loop_at(body, at) for at in places]
            known = zip(places, loops, strict=True)
            indices = [made[at] if loop is None else _index(place[loop]) for at, loop in known]
            made[value] = tensor.extract(made[source], in_order(indices, orders(source)))
        else:
            made[value] = copied(op, [made[operand] for operand in op.operands]).results[0]
    return made[body.elements[0]]


def _read(source: Any, places: ir.AffineMap) -> Any:
    """Return the element of a tensor at loops and zeros."""
    return tensor.extract(source, [_index(expr.position) if is_loop(expr) else index(0) for expr in places.results])


def _index(loop: int) -> Any:
    return linalg.IndexOp(loop).result


def _is_integer(value: Any) -> bool:
    return isinstance(value.type.element_type, (ir.IntegerType, ir.IndexType))


def _reduced(body: Body) -> list[Any]:
    """Return the maps of operands, apart from the result's, that are read at loops which are reduced."""
    loops = {loop for loop, kind in enumerate(body.iterators) if kind == "reduction"}
    return [m for m in maps_of(body.op)[:-1] if any(is_loop(expr) and expr.position in loops for expr in m.results)]


def _moved(expr: Any, place: Mapping[int, int]) -> Any:
    """Return a loop, or a zero, with the loops in other places."""
    return ir.AffineExpr.get_dim(place[expr.position]) if is_loop(expr) else expr
