"""Elements that the body of an op reads in the order of its loops become elements of an operand.

PyTorch's exporter writes some ops with bodies that read tensors at loop indices: ``torch.aten.adaptive_avg_pool2d`` to
one pixel, the last pooling of most networks for images, which also compares the pixel's place with the image's size;
and the embeddings of positions, which are the first rows of a table. IREE 3.13 computes them element by element, and no
script schedules them.

Loop indices themselves, the numbers 0, 1, 2 and so on, become constants. IREE fuses what is computed from loop indices
into the ops that read it. A gather that has its tensors of weights as operands keeps a loop per row, column and
channel; one that computes them has its last two loops made one, whose index it divides into column and channel, and is
not vectorized then (CollapseDimensions.cpp).
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from iree.compiler import ir
from iree.compiler.dialects import arith, linalg

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.constant_values import scalar_constant
from mlir_sched.program.rewrites.linalg_ops import GENERIC, copied, slice_of
from mlir_sched.program.rewrites.padding.tensor_pad import pads_with_zeros, sides_of
from mlir_sched.program.rewrites.placed.body import Body, computes_range, less, rebuilt
from mlir_sched.program.rewrites.placed.links import Link, Made, Operands, Read, counting
from mlir_sched.program.rewrites.placed.placed_rewrite import PlacedRewrite, PlacedSite
from mlir_sched.program.rewrites.walked_program import WalkedProgram


@dataclass(frozen=True)
class ReadingSite(PlacedSite, Body):
    """A result of an op whose body computes of its loops' indices, and of tensors that it reads at these.

    Attributes:
        number: Which result: -1 for the last one, -2 for the one before.
    """

    number: int

    @cached_property
    def ops(self) -> list[Any]:
        """The op, padding that is not read, and what makes numbers of loops."""
        return list(dict.fromkeys((self.op, *(producer(link.value) for link in self.links))))

    @cached_property
    def links(self) -> list[Link]:
        """The padded tensors, and numbers of loops."""
        padded = (place for place, read in enumerate(self.reads) if self._pad(read) is not None)
        return [*(Read(self.op, place) for place in padded), *counting(self.op)]

    @cached_property
    def leaves(self) -> list[Link]:
        """The operands, then the tensors that are read, without padding that is not."""
        pads = enumerate(map(self._pad, self.reads))
        return [Operands(self.op, 0), *(Read(self.op, place) if pad is None else Link(pad, 0) for place, pad in pads)]

    @property
    def results(self) -> list[Made]:
        """The result."""
        return [Made(self.op, len(self.op.results) + self.number)]

    @cached_property
    def built(self) -> tuple[Hashable, ...]:
        """The loops that tensors are read at."""
        return tuple(tuple(self.loops(read)) for read in self.reads)

    @property
    def in_order(self) -> bool:
        """Whether every tensor is read at loops, each in front of its end, or at zeros, and no other result counts."""
        starts = self.arguments[-len(self.op.results) :]
        others = [start for start in starts if start != self.arguments[self.number] and list(start.uses)]
        alone = not others or scalar_constant(self.elements[self.number]) is not None
        return self.is_plain and alone and all(map(self._is_in_order, self.reads))

    @cached_property
    def extents(self) -> dict[int | None, int]:
        """The number of iterations of every loop; 1 for what is no loop."""
        shapes = [value.type.shape for value in self.op.operands]
        return dict(zip(chain(*self.places), chain(*shapes), strict=True)) | {None: 1}

    def sizes(self, read: Any) -> list[int]:
        """Return how many elements are read along every dim."""
        return [self.extents[loop] for loop in self.loops(read)]

    def always(self, value: Any, _: Any) -> Any | None:
        """Return true in place of a comparison of a loop's index with a number that is larger."""
        found, limit = less(producer(value))
        if limit is None or (loop := self.loop_at(found)) is None or self.extents[loop] > limit:
            return None
        return arith.constant(value.type, 1)

    def _pad(self, read: Any) -> Any | None:
        """Return what pads a tensor behind all that is read, and nowhere else; None where nothing does."""
        pad = producer(read.operands[0])
        behind = pad is not None and pads_with_zeros(pad) and not any(sides_of(pad)[0])
        return pad if behind and _has(pad.operands[0], self.sizes(read)) else None

    def _is_in_order(self, read: Any) -> bool:
        source, *places = read.operands
        loops = [loop for loop in self.loops(read) if loop is not None]
        zeros = [place for place in places if scalar_constant(place) == 0]
        return len({*loops}) + len(zeros) == len(places) and _has(source, self.sizes(read))


def _has(tensor: Any, sizes: Sequence[int]) -> bool:
    """Say whether a tensor has so many elements along every dim."""
    return all(size <= own for size, own in zip(sizes, tensor.type.shape, strict=True))


@dataclass(frozen=True)
class OrderedReads(PlacedRewrite[ReadingSite]):
    """Makes operands of what bodies read in order, constants of what counts up, and one op per result."""

    name = "ordered_reads"

    def sites(self, program: WalkedProgram) -> list[ReadingSite]:
        """Return the results of ops that read tensors, all of them in order, or count up."""
        generics = [op for op in program.ops if op.name == GENERIC]
        ops = [op for op in generics if Body(op).reads or computes_range(op)]
        found = [ReadingSite(op, number) for op in ops for number in range(-len(op.results), 0)]
        return [site for site in found if site.in_order]

    def compute(self, site: ReadingSite, *inputs: Any) -> Any:
        """Return the result, made by an op of its own."""
        operands, sources, element = inputs[: len(site.places)], inputs[len(site.places) :], site.elements[site.number]
        if scalar_constant(element) is not None:
            return linalg.fill(copied(producer(element), []).result, outs=[operands[site.number]])
        if computes_range(site.op):
            numbers = np.arange(site.result.type.shape[0], dtype=f"i{site.result.type.element_type.width // 8}")
            return arith.constant(site.result.type, ir.DenseElementsAttr.get(numbers, type=site.result.type))
        known = [*zip(site.arguments, zip(operands, site.places, strict=True), strict=True)]
        parts = [
            (read.result, (slice_of(source, [0] * source.type.rank, site.sizes(read)), site.loops(read)))
            for read, source in zip(site.reads, sources, strict=True)
        ]
        given = dict([*known[: -len(site.op.results)], *parts, known[site.number]])
        return rebuilt(element, given, site.iterators, site.always)
