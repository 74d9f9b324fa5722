"""Ops with a loop per dim: element-wise ops, broadcasts, reductions and gathers. Their loops are reordered.

PyTorch's exporter writes interpolations, and other ops that index an image by tensors, as bodies that read elements of
the image at computed places. IREE 3.13 reads them one by one. With channels last the elements of a pixel are adjacent,
and MLIR's vectorizer reads vectors of them (``vectorizeTensorExtract`` in Vectorization.cpp), provided that the other
indices stay the same along the vector. It sees that they do where the body reads them from tensors, but not where they
are operands; so the body reads the tensors of indices, too.
"""

from collections.abc import Callable, Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import linalg, tensor

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.layout.channel_dims import Axes
from mlir_sched.program.rewrites.layout.rules.rule import Orders, in_order, marked
from mlir_sched.program.rewrites.linalg_ops import index, sizes_of
from mlir_sched.program.rewrites.placed.body import EXTRACT, Body, rebuilt


def fits(op: Any) -> bool:
    """Say whether the operands are read at loops and zeros: element-wise, broadcast, or one value reduced."""
    body = Body(op)
    reduced = {loop for loop, kind in enumerate(body.iterators) if kind == "reduction"}
    summed = [each for each in body.places[:-1] if reduced & {*each}]
    return body.is_plain and len(summed) <= (0 if body.reads else 1)


def axes(op: Any) -> Sequence[Axes]:
    """Return the loops that the dims are read at."""
    body = Body(op)
    return [*body.places, *map(body.loops, body.reads), body.places[-1]]


def build(op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
    """Return the op with its loops in the order of its result, those that it reduces behind them."""
    body = Body(op)
    before = [in_order(each, orders(value)) for each, value in zip(body.places, op.operands, strict=True)]
    made = [loop for loop in before[-1] if loop is not None]
    loops = [*made, *(loop for loop in range(len(body.iterators)) if loop not in made)]
    places = [[None if loop is None else loops.index(loop) for loop in each] for each in before]
    *values, start = inputs[: len(places)]
    if not list(body.arguments[-1].uses):
        start = tensor.empty(sizes_of(start), start.type.element_type)
    read = dict(zip(body.arguments, zip((*values, start), places, strict=True), strict=True))
    tensors = dict(zip(body.inputs, inputs, strict=True))

    def moved(value: Any, again: Callable[[Any], Any]) -> Any | None:
        if isinstance(value.type, ir.IndexType) and (loop := body.loop_at(value)) is not None:
            return linalg.IndexOp(loops.index(loop)).result
        if value in read:
            source, at = read[value]
            return tensor.extract(source, [index(0) if loop is None else linalg.IndexOp(loop).result for loop in at])
        made_by = producer(value)
        if made_by.name != EXTRACT:
            return None
        source, *indices = made_by.operands
        return tensor.extract(tensors[source], in_order(list(map(again, indices)), orders(source)))

    *operands, last = read.items()
    kept = [each for each in operands if not body.reads or isinstance(each[0].type, ir.FloatType)]
    kinds = [body.iterators[loop] for loop in loops]
    result = rebuilt(body.elements[0], dict([*kept, last]), kinds, moved)
    return marked(result) if body.reads else result
