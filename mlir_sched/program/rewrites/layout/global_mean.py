"""Means of all pixels of an image, which PyTorch's exporter writes as a gather, computed as sums.

``torch.aten.adaptive_avg_pool2d`` to one pixel, the last pooling of most networks for images, reads one pixel after the
other out of a padded copy of the image, and compares the pixel's place with the image's size. IREE 3.13 computes such a
gather element by element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith, transform

from mlir_sched.compiler.operations import producer, walk
from mlir_sched.program.rewrites.constant_values import scalar_constant
from mlir_sched.program.rewrites.linalg_ops import dims_map, expand, generic, number, zeros
from mlir_sched.program.rewrites.padding.tensor_pad import only_pad, pads_with_zeros, sides_of
from mlir_sched.program.rewrites.replacement import (
    attributes_of,
    match_dag,
    match_type,
    only_op,
    operand_of,
    producer_of,
)
from mlir_sched.program.rewrites.site_rewrite import OpSite, SiteRewrite, told_apart

GENERIC = "linalg.generic"
SUM_BODY = (
    *["linalg.index"] * 3,
    "tensor.extract",
    *["arith.cmpi", "arith.select"] * 2,
    "arith.addf",
    "linalg.yield",
)
"""Ops of the body of the gather that adds up the pixels."""
LESS = 6
"""``ult`` of ``arith.cmpi``."""


@dataclass(frozen=True)
class MeanSite(OpSite):
    """The division of sums by the number of pixels; its operands are the number and the sums.

    Attributes:
        pad: The ``tensor.pad`` that the pixels are read from.
    """

    pad: Any

    @property
    def inputs(self) -> list[Any]:
        """The image without padding: batch, channels, rows, columns."""
        return [self.pad.operands[0]]

    @property
    def matched(self) -> tuple[Any, ...]:
        """What a matcher compares: the division, and the size of the image."""
        return _matched(self.op)

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key, equal for sites that the same replacement is right for."""
        return *self.matched, str(self.inputs[0].type), attributes_of(self.pad)


@dataclass(frozen=True)
class GlobalMean(SiteRewrite[MeanSite]):
    """Adds up the pixels of every channel, and divides by their number."""

    name = "global_mean"

    def sites(self, program: ir.Module) -> list[MeanSite]:
        """Return the means whose divisions no matcher takes for another op of the program."""
        found = [(op, _site(op)) for op in walk(program.operation) if _is_division(op)]
        others = {_matched(op) for op, site in found if site is None}
        apart = told_apart([site for _, site in found if site is not None], lambda site: site.matched)
        return [site for site in apart if site.matched not in others]

    def match(self, root: Any, site: MeanSite) -> None:
        """Emit the comparison of the division and of the size of the image: images of other sizes have means, too."""
        transform.MatchOperationNameOp(root, [GENERIC])
        match_dag(site.op, list(site.op.operands), root)
        match_type(operand_of(producer_of(root, 0), 0), _window(site.op).type)

    def inputs(self, op: Any, site: MeanSite) -> list[Any]:
        """Emit a handle on the image; fail unless its pixels are gathered as in the site."""
        extract = only_op(producer_of(op, 0), "tensor.extract")
        return [operand_of(only_pad(producer_of(extract, 0), site.pad), 0)]

    def compute(self, site: MeanSite, *inputs: Any) -> Any:
        """Return the mean of every channel, with one row and one column."""
        del site
        (image,) = inputs
        batch, channels, rows, columns = image.type.shape
        element = image.type.element_type
        kinds = ["parallel", "parallel", "reduction", "reduction"]
        maps = [dims_map(4, range(4)), dims_map(4, range(2))]
        sums = generic([image], zeros([batch, channels], element), maps, kinds, lambda x, total: arith.addf(total, x))
        pixels = number(element, float(rows * columns))
        same = [dims_map(2, range(2))] * 2
        means = generic([sums], sums, same, kinds[:2], lambda total, _: arith.divf(total, pixels))
        return expand(means, [[0], [1, 2, 3]], [batch, channels, 1, 1])

    def marked(self, result: Any) -> Any:
        """Return the division: the reshape behind it may be folded."""
        return producer(producer(result).operands[0])


def _matched(division: Any) -> tuple[Any, ...]:
    """Return what a matcher compares of a division."""
    window = _window(division)
    return *OpSite(division).kind, str(window.type) if window is not None else ""


def _window(division: Any) -> Any:
    """Return the first operand of the op that makes the divisor: in a mean, an empty tensor of the image's size."""
    divisor = producer(division.operands[0])
    return divisor.operands[0] if divisor is not None and len(divisor.operands) else None


def _is_division(op: Any) -> bool:
    """Say whether an op divides each element of its result's first value by an element of its only input."""
    if op.name != GENERIC or len(op.operands) != 2 or len(op.results) != 1:
        return False
    number, total = op.regions[0].blocks[0].arguments
    inner = [one.operation for one in op.regions[0].blocks[0]]
    return [one.name for one in inner] == ["arith.divf", "linalg.yield"] and list(inner[0].operands) == [total, number]


def _site(division: Any) -> MeanSite | None:
    """Return the site that ends in a division; None where it does not divide sums of all pixels by their number."""
    number, sums = division.operands
    gather = producer(sums)
    if gather is None or gather.name != GENERIC or list(gather.results) != [sums, number]:
        return None
    inner = [one.operation for one in gather.regions[0].blocks[0]]
    if tuple(one.name for one in inner) != SUM_BODY:
        return None
    pad = producer(inner[3].operands[0])
    if pad is None or not pads_with_zeros(pad) or any(sides_of(pad)[0]) or len(pad.operands[0].type.shape) != 4:
        return None
    *_, rows, columns = shape = list(pad.operands[0].type.shape)
    one_pixel = list(division.result.type.shape) == [*shape[:2], 1, 1]
    window = list(gather.operands[0].type.shape) == [rows, columns] and len(gather.operands) == 3
    if one_pixel and window and shape[0] == 1 and _adds_all(gather, inner, rows, columns):
        return MeanSite(division, pad)
    return None


def _adds_all(gather: Any, inner: list[Any], rows: int, columns: int) -> bool:
    """Say whether the body of a gather adds the pixel of its last two loops, and returns the number of pixels."""
    channel, row, column, pixel, row_less, row_or_zero, column_less, pixel_or_zero, added, end = inner
    places = [channel.result, row.result, column.result]
    _, total, _ = gather.regions[0].blocks[0].arguments
    return (
        [ir.IntegerAttr(place.attributes["dim"]).value for place in (channel, row, column)] == [1, 4, 5]
        and list(pixel.operands)[2:] == places
        and scalar_constant(pixel.operands[1]) == 0
        and _is_less(row_less, row.result, rows)
        and _is_less(column_less, column.result, columns)
        and list(row_or_zero.operands)[:2] == [row_less.result, pixel.result]
        and list(pixel_or_zero.operands)[:2] == [column_less.result, row_or_zero.result]
        and [scalar_constant(select.operands[2]) for select in (row_or_zero, pixel_or_zero)] == [0.0, 0.0]
        and list(added.operands) == [pixel_or_zero.result, total]
        and end.operands[0] == added.result
        and scalar_constant(end.operands[1]) == rows * columns
        and _kinds(gather) == ["parallel"] * 4 + ["reduction"] * 2
    )


def _is_less(compare: Any, place: Any, size: int) -> bool:
    predicate = ir.IntegerAttr(compare.attributes["predicate"]).value
    return predicate == LESS and compare.operands[0] == place and scalar_constant(compare.operands[1]) == size


def _kinds(op: Any) -> list[str]:
    """Return the iterator types of a generic op."""
    return ["reduction" if "reduction" in str(kind) else "parallel" for kind in op.attributes["iterator_types"]]
