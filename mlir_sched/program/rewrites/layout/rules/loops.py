"""Ops with a loop per dim: element-wise ops, broadcasts, reductions and gathers. Their loops are reordered.

PyTorch's exporter writes interpolations, and other ops that index an image by tensors, as bodies that read elements of
the image at computed places. IREE 3.13 reads them one by one. With channels last the elements of a pixel are adjacent,
and MLIR's vectorizer reads vectors of them (``vectorizeTensorExtract`` in Vectorization.cpp), provided that the other
indices stay the same along the vector. It sees that they do where the body reads them from tensors, but not where they
are operands; so the body reads the tensors of indices, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import linalg, tensor

from mlir_sched.program.rewrites.layout.bodies import EXTRACT, INDEX, Body, made_again
from mlir_sched.program.rewrites.layout.channel_dims import Form
from mlir_sched.program.rewrites.layout.loop_indices import loop_at
from mlir_sched.program.rewrites.layout.rules.rule import Axes, Orders, Rule, in_order, marked
from mlir_sched.program.rewrites.linalg_ops import GENERIC, dims_map, generic, index, sizes_of
from mlir_sched.program.rewrites.replacement import operand_of


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
        return [*op.operands, *Body(op).tensors]

    def handles(self, handle: Any, op: Any) -> list[Any]:
        """Emit handles on the operands, and on what the body reads elements of."""
        body = Body(op)
        found = dict(zip((read.operands[0] for read in body.reads), body.handles_on_reads(handle), strict=True))
        return [*super().handles(handle, op), *(operand_of(found[each], 0) for each in body.tensors)]

    def axes(self, op: Any) -> list[Axes]:
        """Return the loops that the dims are read at."""
        body = Body(op)
        reads = {read.operands[0]: list(read.operands)[1:] for read in reversed(body.reads)}
        loops = ([loop_at(body, at) for at in reads[each]] for each in body.tensors)
        return [*body.places, *loops, body.places[-1]]

    def any_size(self, op: Any) -> bool:  # noqa: ARG002 - for all
        """Say that sizes are those of what is there at the start."""
        return True

    def build(self, op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
        """Return the op with its loops in the order of its result, those that it reduces behind them."""
        body = Body(op)
        before = [in_order(each, orders(value)) for each, value in zip(body.places, op.operands, strict=True)]
        made = [loop for loop in before[-1] if loop is not None]
        loops = [*made, *(loop for loop in range(len(body.iterators)) if loop not in made)]
        places = [[None if loop is None else loops.index(loop) for loop in each] for each in before]
        *values, start = inputs[: len(places)]
        if not list(body.arguments[-1].uses):
            start = tensor.empty(sizes_of(start), start.type.element_type)
        kept = [number for number in range(len(values)) if not (body.reads and _is_integer(values[number]))]

        def element(*scalars: Any) -> Any:
            made = dict(zip(body.tensors, inputs[len(places) :], strict=True))
            made |= {body.arguments[n]: _read(values[n], places[n]) for n in range(len(values)) if n not in kept}
            made |= {body.arguments[n]: scalar for n, scalar in zip((*kept, -1), scalars, strict=True)}
            return _element(body, made, loops, orders)

        kinds = [body.iterators[loop] for loop in loops]
        maps = [dims_map(len(loops), places[n]) for n in (*kept, -1)]
        result = generic([values[n] for n in kept], start, maps, kinds, element)
        return marked(result) if body.reads else result


def _element(body: Body, made: dict[Any, Any], loops: Sequence[int], orders: Orders) -> Any:
    """Return an element, given arguments and tensors, with the loops in another order."""

    def moved(op: Any) -> Any | None:
        if op.name == INDEX:
            return _index(loops.index(loop_at(body, op.result) or 0))
        if op.name != EXTRACT:
            return None
        source, *places = op.operands
        known = [(place, loop_at(body, place)) for place in places]
        computed = {place: made_again(place, made, moved) for place, loop in known if loop is None}
        indices = [computed[place] if loop is None else _index(loops.index(loop)) for place, loop in known]
        return tensor.extract(made[source], in_order(indices, orders(source)))

    return made_again(body.elements[0], made, moved)


def _read(source: Any, places: Sequence[int | None]) -> Any:
    """Return the element of a tensor at loops and zeros."""
    return tensor.extract(source, [index(0) if loop is None else _index(loop) for loop in places])


def _index(loop: int) -> Any:
    return linalg.IndexOp(loop).result


def _is_integer(value: Any) -> bool:
    return isinstance(value.type.element_type, (ir.IntegerType, ir.IndexType))


def _reduced(body: Body) -> list[tuple[int | None, ...]]:
    """Return the places of operands, apart from the result's, that are read at loops which are reduced."""
    loops = {loop for loop, kind in enumerate(body.iterators) if kind == "reduction"}
    return [each for each in body.places[:-1] if loops & {*each}]
