"""Convolutions and poolings with channels first, of one or two dimensions, which say where channels are.

A bias that starts the sums, as PyTorch exports it, is added to the result: scripts compute a convolution from zeros,
with what follows in the same tile.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.convolution_ops import FILTER_TO_LAST, PLANE_FIRST, dilations_of, strides_of
from mlir_sched.program.rewrites.layout.channel_dims import Axes
from mlir_sched.program.rewrites.layout.rules.rule import Orders, in_order, marked
from mlir_sched.program.rewrites.linalg_ops import (
    barrier,
    generic,
    multiply_add,
    numbers_of,
    sizes_of,
    transposed,
    with_parts,
    zeros,
)

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


def axes(op: Any) -> Sequence[Axes]:
    """Return places of dims, for images; filters, and what the result starts with, have none."""
    return [range(op.result.type.rank), (), (), range(op.result.type.rank)]


def build(op: Any, inputs: Sequence[Any], orders: Orders) -> Any:
    """Return the sums, or the largest elements, plus the bias."""
    (image, taps, start, *bias), (form, order), last = inputs, FORMS[op.name], orders(op.result)
    spatial = len(last) - (3 if op.name == GROUPED_FIRST else 2)
    strides, dilations = strides_of(op, spatial), dilations_of(op, spatial)
    init = zeros(in_order(sizes_of(start), last), start.type.element_type) if bias else transposed(start, last)
    if not reads_all_pixels(op):
        image, strides = _read_pixels(image, init, strides), [1, 1]
    made = form(image, transposed(taps, order), outs=[init], strides=strides, dilations=dilations)
    result = marked(made if isinstance(made, ir.Value) else made.result)
    for spread in biases(op):
        made = numbers_of(spread, "dimensions")
        dims = [last.index(dim) for dim in range(len(last)) if dim not in made]
        result = with_parts(result, bias, dims, arith.addf)
    return result


def biases(op: Any) -> list[Any]:
    """Return the op that spreads the bias which the sums of a convolution start with; none where they start without."""
    start = producer(op.operands[2]) if op.name in FORMS and "conv" in op.name else None
    return [start] if start is not None and start.name == "linalg.broadcast" else []


def reads_all_pixels(op: Any) -> bool:
    """Say whether a convolution or a pooling leaves out no pixels for having one tap and a stride."""
    return op.name != PLANE_FIRST or list(op.operands[1].type.shape[2:]) != [1, 1] or max(strides_of(op, 2)) == 1


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
