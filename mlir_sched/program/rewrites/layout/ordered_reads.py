"""Elements that the body of an op reads in the order of its loops become elements of an operand.

PyTorch's exporter writes some ops with bodies that read tensors at loop indices: ``torch.aten.adaptive_avg_pool2d`` to
one pixel, the last pooling of most networks for images, which also compares the pixel's place with the image's size;
and the embeddings of positions, which are the first rows of a table. IREE 3.13 computes them element by element, and no
script schedules them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, transform

from mlir_sched.compiler.operations import producer, walk
from mlir_sched.program.rewrites.constant_values import scalar_constant
from mlir_sched.program.rewrites.layout.bodies import EXTRACT, Body, is_loop, values_of
from mlir_sched.program.rewrites.layout.loop_indices import loop_at, predicate_of
from mlir_sched.program.rewrites.linalg_ops import GENERIC, copied, generic, maps_of, slice_of
from mlir_sched.program.rewrites.padding.tensor_pad import only_pad, pads_with_zeros, sides_of
from mlir_sched.program.rewrites.placed_rewrite import PlacedRewrite
from mlir_sched.program.rewrites.replacement import operand_of, ops_named, producer_of

LESS = (2, 6)
"""``slt`` and ``ult`` of ``arith.cmpi``."""


@dataclass(frozen=True)
class ReadingSite(Body):
    """A result of an op whose body reads tensors at its loops' indices alone.

    Attributes:
        number: Which result.
    """

    number: int

    @property
    def inputs(self) -> list[Any]:
        """The operands, then the tensors that are read, without padding that is not."""
        return [*self.op.operands, *map(self.source, self.reads)]

    @property
    def result(self) -> Any:
        """The result."""
        return self.op.results[self.number]

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key, equal for results that the same replacement is right for."""
        loops = (tuple(self.loops(read)) for read in self.reads)
        return self.number, *super().kind, *loops, *(str(value.type) for value in self.inputs)

    @property
    def in_order(self) -> bool:
        """Whether every tensor is read at loops, each in front of its end, or at zeros, and no other result counts."""
        others = {*self.arguments[-len(self.op.results) :]} - {self.start}
        needed = {*values_of(self.elements[self.number])}
        return self.is_plain and all(map(self._is_in_order, self.reads)) and not others & needed

    @property
    def start(self) -> Any:
        """The element that the result starts with."""
        return self.arguments[self.number - len(self.op.results)]

    @property
    def extents(self) -> dict[int, int]:
        """The number of iterations of every loop."""
        return {
            expr.position: size
            for operand, each in zip(self.op.operands, maps_of(self.op), strict=True)
            for expr, size in zip(each.results, operand.type.shape, strict=True)
            if is_loop(expr)
        }

    def loops(self, read: Any) -> list[int | None]:
        """Return the loops that a tensor is read at; None for what is no loop."""
        return [loop_at(self, place) for place in list(read.operands)[1:]]

    def sizes(self, read: Any) -> list[int]:
        """Return how many elements are read along every dim."""
        return [1 if loop is None else self.extents[loop] for loop in self.loops(read)]

    def source(self, read: Any) -> Any:
        """Return the tensor that is read, without padding behind what is read."""
        pad = producer(read.operands[0])
        if pad is None or not pads_with_zeros(pad) or any(sides_of(pad)[0]):
            return read.operands[0]
        inside = all(size <= own for size, own in zip(self.sizes(read), pad.operands[0].type.shape, strict=True))
        return pad.operands[0] if inside else read.operands[0]

    def always(self, op: Any) -> bool:
        """Say whether an op of the body compares a loop's index with a number that is larger."""
        if op.name != "arith.cmpi" or predicate_of(op) not in LESS:
            return False
        loop, limit = loop_at(self, op.operands[0]), scalar_constant(op.operands[1])
        return loop is not None and limit is not None and self.extents[loop] <= limit

    def _is_in_order(self, read: Any) -> bool:
        source, *places = read.operands
        loops = [loop for loop in self.loops(read) if loop is not None]
        zeros = [place for place in places if scalar_constant(place) == 0]
        inside = all(size <= own for size, own in zip(self.sizes(read), source.type.shape, strict=True))
        return len({*loops}) + len(zeros) == len(places) and inside


@dataclass(frozen=True)
class OrderedReads(PlacedRewrite[ReadingSite]):
    """Makes operands of what bodies read in order, and one op per result."""

    name = "ordered_reads"

    def sites(self, program: ir.Module) -> list[ReadingSite]:
        """Return the results of ops that read tensors, all of them in order."""
        ops = [op for op in walk(program.operation) if op.name == GENERIC and Body(op).reads]
        found = [ReadingSite(op, number) for op in ops for number in range(len(op.results))]
        return [site for site in found if site.in_order]

    def match(self, root: Any, site: ReadingSite) -> None:
        """Emit the comparison of form, types and body."""
        site.match(root)

    def inputs(self, op: Any, site: ReadingSite) -> list[Any]:
        """Emit handles on the operands and on what is read; fail unless it is padded as in the site."""
        reads = transform.SplitHandleOp([transform.AnyOpType.get()] * len(site.reads), ops_named(op, EXTRACT)).results
        sources = [
            operand_of(handle, 0) if site.source(read) == read.operands[0] else _unpadded(handle, read)
            for handle, read in zip(reads, site.reads, strict=True)
        ]
        return [*(operand_of(op, number) for number in range(len(site.op.operands))), *sources]

    def compute(self, site: ReadingSite, *inputs: Any) -> Any:
        """Return the result, made by an op of its own."""
        maps, element = maps_of(site.op), site.elements[site.number]
        init, operands = len(maps) - len(site.op.results) + site.number, len(maps) - len(site.op.results)
        if scalar_constant(element) is not None:
            return linalg.fill(copied(producer(element), []).result, outs=[inputs[init]])
        read = zip(inputs[len(maps) :], map(site.sizes, site.reads), strict=True)
        values = [*inputs[:operands], *(slice_of(source, [0] * len(sizes), sizes) for source, sizes in read)]
        given = [*site.arguments[:operands], *(each.result for each in site.reads), site.start]
        places = [*maps[:operands], *(_map(site.loops(each), maps[0].n_dims) for each in site.reads), maps[init]]

        def body(*scalars: Any) -> Any:
            return _made(site, element, dict(zip(given, scalars, strict=True)))

        return generic(values, inputs[init], places, site.iterators, body)


def _made(site: ReadingSite, value: Any, made: dict[Any, Any]) -> Any:
    """Return a value of the body, given some; comparisons that always hold are true."""
    if value not in made:
        op = producer(value)
        always = site.always(op)
        operands = [] if always else [_made(site, operand, made) for operand in op.operands]
        made[value] = arith.constant(value.type, 1) if always else copied(op, operands).results[0]
    return made[value]


def _map(loops: Sequence[int | None], number: int) -> ir.AffineMap:
    """Return the map to loops, or zeros, from a number of loops."""
    exprs = [ir.AffineExpr.get_constant(0) if loop is None else ir.AffineExpr.get_dim(loop) for loop in loops]
    return ir.AffineMap.get(number, 0, exprs)


def _unpadded(extract: Any, read: Any) -> Any:
    """Emit a handle on the tensor whose padding an op reads in front of; fail unless it is padded as for another."""
    return operand_of(only_pad(producer_of(extract, 0), producer(read.operands[0])), 0)
