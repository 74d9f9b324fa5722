"""Gathers: ops that read images, or tables, at computed places.

PyTorch's exporter writes interpolations, and other ops that index an image by tensors, with one tensor of indices per
dim of the image; those of batch and channel count up. An index below zero counts from the end. Rows of a table are read
at the numbers of a tensor, which the body asserts to be rows of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from iree.compiler import ir

from mlir_sched.attributes import REWRITTEN
from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.constant_values import scalar_constant
from mlir_sched.program.rewrites.convolution_ops import is_static_f32
from mlir_sched.program.rewrites.layout.bodies import GENERIC, INDEX, Body, is_leaf, values_of
from mlir_sched.program.rewrites.linalg_ops import COLLAPSE, EXPAND, maps_of

EXTRACT, ASSERT = "tensor.extract", "cf.assert"
BATCH, CHANNEL = 0, 1
"""Loops of a gather channels first, and dims of its images."""
LESS = 2
"""``slt`` of ``arith.cmpi``."""
CONSTANT_RANGES = "constant_ranges"
"""What constants are marked with that count up in the place of an op (:mod:`.ranges`)."""


@dataclass(frozen=True)
class GatherSite(Body):
    """An op whose body reads elements of tensors that are not its operands.

    Attributes:
        op: A ``linalg.generic`` of one result; its operands are tensors of indices, or of weights, and the init.
    """

    @property
    def indices(self) -> list[Any]:
        """The tensors of indices."""
        return list(self.op.operands)[:-1]

    @property
    def extracts(self) -> list[Any]:
        """The ops of the body that read images, in order."""
        return [one.operation for one in self.block if one.operation.name == EXTRACT]

    @property
    def images(self) -> list[Any]:
        """The images, each once."""
        return list(dict.fromkeys(extract.operands[0] for extract in self.extracts))

    @property
    def inputs(self) -> list[Any]:
        """The tensors of indices, then the images."""
        return [*self.indices, *self.images]

    @property
    def last(self) -> Any:
        """The op of the body that makes an element."""
        return producer(self.element)

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key, equal for gathers that the same replacement is right for."""
        counted = [self._counted_loop(number) for number in range(len(self.indices))]
        return *super().kind, *counted, *(str(value.type) for value in self.inputs)

    @property
    def keeps_channels(self) -> bool:
        """Whether it makes an image, and reads in order along channels: every channel from the same one of images."""
        known = {value for one in self.block for value in one.operation.results}
        known |= {*list(self.block.arguments)[:-1], *self.images}
        return (
            all(is_static_f32(image) and image.type.rank == 4 for image in (self.result, *self.images))
            and maps_of(self.op)[-1] == ir.AffineMap.get_identity(4)
            and all(value in known or scalar_constant(value) is not None for value in self.values)
            and all(map(self._is_the_same_for_all_channels, range(len(self.indices))))
            and all(map(self._reads_its_channel, self.extracts))
        )

    @property
    def reads_in_order(self) -> bool:
        """Whether the element at any place of the result is the element at the same place of an image."""
        if self.extracts != [self.last]:
            return False
        image, *places = self.extracts[0].operands
        kinds = self.result.type, image.type
        if not all(kind.has_static_shape for kind in kinds) or len(places) != self.result.type.rank:
            return False
        return (
            maps_of(self.op)[-1] == ir.AffineMap.get_identity(len(places))
            and all(mine <= its for mine, its in zip(*(kind.shape for kind in kinds), strict=True))
            and all(self._is_index_of(value, loop) for loop, value in enumerate(places))
        )

    def _is_the_same_for_all_channels(self, number: int) -> bool:
        """Say whether an operand's elements are so, or are the channels' numbers."""
        kind, exprs = self.op.operands[number].type, maps_of(self.op)[number].results
        static = isinstance(kind, ir.RankedTensorType) and kind.has_static_shape
        plain = all(isinstance(expr, (ir.AffineDimExpr, ir.AffineConstantExpr)) for expr in exprs)
        return static and plain and (CHANNEL not in _loops(exprs) or self._counted_loop(number) == CHANNEL)

    def _reads_its_channel(self, extract: Any) -> bool:
        """Say whether an image is read at the channel of the result, at a place that all channels share."""
        image, batch, channel, *place = extract.operands
        return (
            self._is_index_of(channel, CHANNEL)
            and (image.type.shape[BATCH] == 1 or self._is_index_of(batch, BATCH))
            and not any(CHANNEL in self._loops_of(value) for value in place)
        )

    def _is_index_of(self, value: Any, loop: int) -> bool:
        """Say whether a value of the body is the index of a loop."""
        op = producer(value)
        if op is None:
            return value in self.block.arguments and self._counted_loop(value.arg_number) == loop
        if op.name == "arith.select":
            return _is_below_zero(op.operands[0], op.operands[2]) and self._is_index_of(op.operands[2], loop)
        if op.name == "arith.index_cast":
            return self._is_index_of(op.operands[0], loop)
        return op.name == INDEX and loop_of(op) == loop

    def _counted_loop(self, number: int) -> int | None:
        """Return the loop whose index the element of an operand is; None where it may be something else."""
        operand = self.op.operands[number]
        pairs = zip(maps_of(self.op)[number].results, operand.type.shape, strict=True)
        exprs = [expr for expr, size in pairs if size > 1]
        if len(exprs) != 1 or not isinstance(exprs[0], ir.AffineDimExpr) or not _counts_up(_before_reshapes(operand)):
            return None
        return int(exprs[0].position)

    def _loops_of(self, value: Any) -> set[int]:
        """Return the loops that a value of the body depends on."""
        found = set[int]()
        for leaf in filter(is_leaf, values_of(value, set())):
            op = producer(leaf)
            if leaf in self.block.arguments:
                found |= _loops(maps_of(self.op)[leaf.arg_number].results)
            elif op is not None and op.name == INDEX:
                found.add(loop_of(op))
        return found


def gather_site(op: Any) -> GatherSite | None:
    """Return the site of an op that makes its only result by scalar ops, of elements at computed places, too.

    Assertions make nothing, and do not count.
    """
    if op.name != GENERIC or len(op.results) != 1:
        return None
    *inside, end = [one.operation for one in op.regions[0].blocks[0] if one.operation.name != ASSERT]
    names = {one.name for one in inside}
    scalar = all(name in (EXTRACT, INDEX) or name.startswith(("arith.", "math.")) for name in names)
    single = all(len(one.results) == 1 for one in inside)
    made = end.operands[0] in {value for one in inside for value in one.results}
    return GatherSite(op) if EXTRACT in names and scalar and single and made else None


def computes_range(op: Any) -> bool:
    """Say whether an op computes a tensor of one dim whose elements are 0, 1, 2 and so on, from loop indices."""
    if op.name != GENERIC or len(op.operands) != 1 or op.result.type.rank != 1:
        return False
    inside = [one.operation for one in op.regions[0].blocks[0]]
    if [one.name for one in inside] != [INDEX, "arith.index_cast", "linalg.yield"]:
        return False
    return all(after.operands[0] == before.result for before, after in pairwise(inside))


def _counts_up(op: Any) -> bool:
    """Say whether an op, or None, computes the numbers 0, 1, 2 and so on, or is the constant in their place."""
    if op is None or REWRITTEN not in op.attributes:
        return op is not None and computes_range(op)
    return bool(ir.StringAttr(op.attributes[REWRITTEN]).value == CONSTANT_RANGES)


def loop_of(index: Any) -> int:
    """Return the loop of a ``linalg.index``."""
    return int(ir.IntegerAttr(index.attributes["dim"]).value)


def _is_below_zero(condition: Any, value: Any) -> bool:
    """Say whether a condition is that an integer is negative."""
    op = producer(condition)
    if op is None or op.name != "arith.cmpi" or ir.IntegerAttr(op.attributes["predicate"]).value != LESS:
        return False
    return op.operands[0] == value and scalar_constant(op.operands[1]) == 0


def _loops(exprs: Sequence[Any]) -> set[int]:
    """Return the loops among the expressions of an indexing map, which are loops and constants."""
    return {expr.position for expr in exprs if isinstance(expr, ir.AffineDimExpr)}


def _before_reshapes(tensor: Any) -> Any:
    """Return the op that makes a tensor before it is reshaped, or None."""
    op = producer(tensor)
    while op is not None and op.name in (EXPAND, COLLAPSE):
        op = producer(op.operands[0])
    return op
