"""Elements that the body of an op reads in the order of its loops become elements of an operand.

PyTorch's exporter writes some ops with bodies that read tensors at loop indices: ``torch.aten.adaptive_avg_pool2d`` to
one pixel, the last pooling of most networks for images, which also compares the pixel's place with the image's size;
and the embeddings of positions, which are the first rows of a table. IREE 3.13 computes them element by element, and no
script schedules them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from iree.compiler.dialects import arith, linalg

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.constant_values import scalar_constant
from mlir_sched.program.rewrites.layout.bodies import Body, made_again, values_of
from mlir_sched.program.rewrites.layout.loop_indices import loop_at, predicate_of
from mlir_sched.program.rewrites.layout.placed_rewrite import PlacedRewrite, PlacedSite
from mlir_sched.program.rewrites.linalg_ops import GENERIC, copied, dims_map, generic, maps_of, slice_of
from mlir_sched.program.rewrites.padding.tensor_pad import only_pad, pads_with_zeros, sides_of
from mlir_sched.program.rewrites.replacement import attributes_of, operand_of, operands_of, producer_of
from mlir_sched.program.rewrites.walked_program import WalkedProgram

LESS = (2, 6)
"""``slt`` and ``ult`` of ``arith.cmpi``."""


@dataclass(frozen=True)
class ReadingSite(Body, PlacedSite):
    """A result of an op whose body reads tensors at its loops' indices alone.

    Attributes:
        number: Which result.
    """

    number: int

    @cached_property
    def inputs(self) -> list[Any]:
        """The operands, then the tensors that are read, without padding that is not."""
        return [*self.op.operands, *map(self.source, self.reads)]

    @property
    def result(self) -> Any:
        """The result."""
        return self.op.results[self.number]

    @cached_property
    def form(self) -> tuple[Hashable, ...]:
        """What is compared of the op, and of padding that is not read."""
        pads = (producer(read.operands[0]) for read in self.reads if self.source(read) != read.operands[0])
        return self.number, *super().form, *map(attributes_of, pads)

    @cached_property
    def built(self) -> tuple[Hashable, ...]:
        """The loops that tensors are read at."""
        return tuple(tuple(self.loops(read)) for read in self.reads)

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

    @cached_property
    def extents(self) -> dict[int, int]:
        """The number of iterations of every loop."""
        shapes = zip(self.places, (value.type.shape for value in self.op.operands), strict=True)
        pairs = (pair for loops, shape in shapes for pair in zip(loops, shape, strict=True))
        return {loop: size for loop, size in pairs if loop is not None}

    def loops(self, read: Any) -> list[int | None]:
        """Return the loops that a tensor is read at; None for what is no loop."""
        return [loop_at(self, place) for place in list(read.operands)[1:]]

    def sizes(self, read: Any) -> list[int]:
        """Return how many elements are read along every dim."""
        return [1 if loop is None else self.extents[loop] for loop in self.loops(read)]

    def is_read_of(self, read: Any, tensor: Any) -> bool:
        """Say whether a tensor has all elements that are read."""
        return all(size <= own for size, own in zip(self.sizes(read), tensor.type.shape, strict=True))

    def source(self, read: Any) -> Any:
        """Return the tensor that is read, without padding behind what is read."""
        pad = producer(read.operands[0])
        behind = pad is not None and pads_with_zeros(pad) and not any(sides_of(pad)[0])
        return pad.operands[0] if behind and self.is_read_of(read, pad.operands[0]) else read.operands[0]

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
        return len({*loops}) + len(zeros) == len(places) and self.is_read_of(read, source)


@dataclass(frozen=True)
class OrderedReads(PlacedRewrite[ReadingSite]):
    """Makes operands of what bodies read in order, and one op per result."""

    name = "ordered_reads"

    def sites(self, program: WalkedProgram) -> list[ReadingSite]:
        """Return the results of ops that read tensors, all of them in order."""
        ops = [op for op in program.ops if op.name == GENERIC and Body(op).reads]
        found = [ReadingSite(op, number) for op in ops for number in range(len(op.results))]
        return [site for site in found if site.in_order]

    def inputs(self, op: Any, site: ReadingSite, *others: Any) -> list[Any]:
        """Emit handles on the operands and on what is read; fail unless it is padded as in the site."""
        del others
        sources = [
            operand_of(handle, 0) if site.source(read) == read.operands[0] else _unpadded(handle, read)
            for handle, read in zip(site.handles_on_reads(op), site.reads, strict=True)
        ]
        return [operands_of(op), *sources]

    def compute(self, site: ReadingSite, *inputs: Any) -> Any:
        """Return the result, made by an op of its own."""
        maps, element = maps_of(site.op), site.elements[site.number]
        init, operands = len(maps) - len(site.op.results) + site.number, len(maps) - len(site.op.results)
        if scalar_constant(element) is not None:
            return linalg.fill(copied(producer(element), []).result, outs=[inputs[init]])
        read = zip(inputs[len(maps) :], map(site.sizes, site.reads), strict=True)
        values = [*inputs[:operands], *(slice_of(source, [0] * len(sizes), sizes) for source, sizes in read)]
        given = [*site.arguments[:operands], *(each.result for each in site.reads), site.start]
        places = [*maps[:operands], *(dims_map(maps[0].n_dims, site.loops(each)) for each in site.reads), maps[init]]

        def always(op: Any) -> Any | None:
            return arith.constant(op.result.type, 1) if site.always(op) else None

        def body(*scalars: Any) -> Any:
            return made_again(element, dict(zip(given, scalars, strict=True)), always)

        return generic(values, inputs[init], places, site.iterators, body)


def _unpadded(extract: Any, read: Any) -> Any:
    """Emit a handle on the tensor whose padding an op reads in front of; fail unless it is padded as for another."""
    return operand_of(only_pad(producer_of(extract, 0), producer(read.operands[0])), 0)
