"""Convolutions and poolings with channels first, which say where channels are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.constant_values import scalar_constant
from mlir_sched.program.rewrites.convolution_ops import (
    FILTER_TO_LAST,
    PLANE_FIRST,
    dilations_of,
    is_static_f32,
    strides_of,
)
from mlir_sched.program.rewrites.dag_site import Path
from mlir_sched.program.rewrites.layout.channel_dims import Dims
from mlir_sched.program.rewrites.layout.rules.rule import Axes, Orders, Rule, in_order, marked
from mlir_sched.program.rewrites.linalg_ops import (
    barrier,
    generic,
    multiply_add,
    number,
    numbers_of,
    sizes_of,
    transposed,
    with_parts,
)
from mlir_sched.program.rewrites.replacement import operand_of, producer_of

BROADCAST, FILL = "linalg.broadcast", "linalg.fill"
GROUPED_FIRST = "linalg.conv_2d_ngchw_gfchw"
"""The grouped convolution over images (batch, groups, channels, rows, columns)."""


def _grouped(image: Any, taps: Any, outs: Sequence[Any], strides: Sequence[int], dilations: Sequence[int]) -> Any:
    """Return the result of a grouped convolution. The filters of a group are innermost, in the result and in the taps.

    Args:
        image, outs: Tensors of dims (batch, rows, columns, groups, channels or filters).
        taps: A tensor of dims (groups, rows, columns, channels, filters).
        strides, dilations: Along rows and columns.
    """
    (down, right), (below, beside) = strides, dilations
    n, y, x, g, f, i, j, c = (ir.AffineExpr.get_dim(dim) for dim in range(8))
    places = [n, y * down + i * below, x * right + j * beside, g, c], [g, i, j, c, f], [n, y, x, g, f]
    maps = [ir.AffineMap.get(8, 0, exprs) for exprs in places]
    return generic([image, taps], outs[0], maps, ["parallel"] * 5 + ["reduction"] * 3, multiply_add)


FORMS: Mapping[str, tuple[Any, tuple[int, ...]]] = {
    PLANE_FIRST: (linalg.conv_2d_nhwc_hwcf, FILTER_TO_LAST),
    "linalg.depthwise_conv_2d_nchw_chw": (linalg.depthwise_conv_2d_nhwc_hwc, (1, 2, 0)),
    "linalg.conv_1d_ncw_fcw": (linalg.conv_1d_nwc_wcf, (2, 1, 0)),
    "linalg.depthwise_conv_1d_ncw_cw": (linalg.depthwise_conv_1d_nwc_wc, (1, 0)),
    "linalg.pooling_nchw_max": (linalg.pooling_nhwc_max, (0, 1)),
    "linalg.pooling_nchw_sum": (linalg.pooling_nhwc_sum, (0, 1)),
    GROUPED_FIRST: (_grouped, (0, 3, 4, 2, 1)),
}
"""The builder of the channels-last op, and the order of the dims of its second operand, by the channels-first op."""


class Windows(Rule):
    """Convolutions and poolings of one or two dimensions, with or without groups.

    A bias that starts the sums, as PyTorch exports it, is added to the result: scripts compute a convolution from
    zeros, with what follows in the same tile.
    """

    names = (*FORMS,)
    effect = "channels are the second dim (of grouped convolutions the second and third): computed channels last"
    reads = 3

    def fits(self, op: Any) -> bool:
        """Say whether the sums start with one number, or with one per channel."""
        start = producer(op.operands[2])
        if start is None or not all(map(is_static_f32, op.operands)):
            return False
        if start.name == BROADCAST:
            return "conv_" in op.name
        return bool(start.name == FILL and scalar_constant(start.operands[0]) is not None)

    def axes(self, op: Any) -> list[Axes]:
        """Return those of equal places for images; filters and biases have none."""
        image, *others, result = super().axes(op)
        return [image, *([None] * len(each) for each in others), result]

    def channels(self, op: Any) -> Dims:
        """Return the dims of channels, and of groups."""
        return frozenset([1, 2] if op.name == GROUPED_FIRST else [1])

    def inputs(self, op: Any) -> list[Any]:
        """Return image, filter, what the sums start with, and the bias where there is one."""
        start = producer(op.operands[2])
        return [*super().inputs(op), *([start.operands[0]] if start.name == BROADCAST else [])]

    def handles(self, handle: Any, op: Any) -> list[Any]:
        """Emit handles on image, filter, start and bias."""
        bias = [operand_of(producer_of(handle, 2), 0)] if len(self.inputs(op)) > self.reads else []
        return [*super().handles(handle, op), *bias]

    def any_size(self, op: Any) -> bool:
        """Say that sizes are those of what is there at the start, unless there are barriers."""
        return not _leaves_out_pixels(op)

    def compared(self, op: Any) -> Mapping[Path, Any]:
        """Return also what the sums start with."""
        start = producer(op.operands[2])
        compared: dict[Path, Any] = {(): op, (2,): start}
        return compared | ({(2, 0): producer(start.operands[0])} if start.name == FILL else {})

    def build(self, op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
        """Return the sums, or the largest elements, plus the bias."""
        image, taps, sized, *bias = inputs
        kind, start = op.result.type, producer(op.operands[2])
        empty = tensor.empty(in_order(sizes_of(sized), orders(op.result)), kind.element_type)
        zero = number(kind.element_type, 0.0 if bias else scalar_constant(start.operands[0]) or 0.0)
        sums = marked(self._windows(op, image, taps, linalg.fill(zero, outs=[empty])))
        if not bias:
            return sums
        made = numbers_of(start, "dimensions")
        places = [orders(op.result).index(dim) for dim in range(kind.rank) if dim not in made]
        return with_parts(sums, bias, places, arith.addf)

    def _windows(self, op: Any, image: Any, taps: Any, init: Any) -> Any:
        """Return the op's result, channels last, without its bias."""
        build, order = FORMS[op.name]
        spatial = image.type.rank - 1 - len(self.channels(op))
        strides, dilations = strides_of(op, spatial), dilations_of(op, spatial)
        if _leaves_out_pixels(op):
            image, strides = _read_pixels(image, init, strides), [1, 1]
        result = build(image, transposed(taps, order), outs=[init], strides=strides, dilations=dilations)
        return result if isinstance(result, ir.Value) else result.result


def _leaves_out_pixels(op: Any) -> bool:
    """Say whether a convolution with one tap has a stride."""
    one = op.name == PLANE_FIRST and list(op.operands[1].type.shape[2:]) == [1, 1]
    return one and max(strides_of(op, 2)) > 1


def _read_pixels(image: Any, init: Any, strides: Sequence[int]) -> Any:
    """Return the pixels that a convolution with one tap reads, one per result: a copy between two barriers.

    IREE 3.13 keeps the stride in the indexing map of the product otherwise, whose loads are then slow. Without the
    barrier in front, it joins the copy with an element-wise op that makes the image for other readers, too, and writes
    only the pixels that are read here.

    Args:
        image, init: Tensors of dims (batch, rows, columns, channels).
        strides: Along rows and columns.
    """
    batch, rows, columns, _ = init.type.shape
    n, y, x, c = (ir.AffineExpr.get_dim(dim) for dim in range(4))
    maps = [ir.AffineMap.get(4, 0, [n, y * strides[0], x * strides[1], c]), ir.AffineMap.get_identity(4)]
    empty = tensor.empty([batch, rows, columns, image.type.shape[-1]], image.type.element_type)
    return barrier(generic([barrier(image)], empty, maps, ["parallel"] * 4, lambda value, _: value))
