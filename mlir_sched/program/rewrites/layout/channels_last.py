"""Networks of channels-first convolutions, computed channels last.

Vectors over output channels suit convolutions of any size, stride and number of taps, but they need the channels of
image, filter and result innermost. IREE's own pass makes channels-last convolutions between transposes of most
two-dimensional convolutions, and its global optimization moves the transposes through padding and element-wise ops
until those of neighbouring convolutions cancel. This rewrite runs the pass, and does the same for the ops that the
pass leaves channels first: depthwise and grouped convolutions, poolings, and the one-dimensional convolutions of audio
networks. One such op in between would keep its transposes. Element-wise ops are fused first, because transposes stay in
front of values with two readers.

A convolution with one tap and a stride above 1 becomes a copy of the pixels that it reads, and a product of them. Where
its image has another reader, IREE 3.13 keeps the stride in the indexing map of the product, whose loads are then slow.
A barrier in front of the copy keeps the image whole (:mod:`mlir_sched.program.rewrites.repair.partial_read`).

The mean of all pixels becomes a sum first (:mod:`.global_mean`): transposes do not move through the gather that
PyTorch's exporter makes of it.

A bias is added to the result of its convolution (:mod:`.added_bias`).

Images are padded channels last in front of depthwise and one-dimensional convolutions, and images that are enlarged
between convolutions are gathered channels last (:mod:`.images`, :mod:`.gather`). Networks with enlarged images also
join images, which is done channels last then. Embeddings of positions, which audio networks add to what convolutions
make, are read as parts of tables (:mod:`.counted_indices`).

A convolution alone would keep its transposes, so a program with a single convolution is not rewritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import linalg, tensor, transform

from mlir_sched.compiler.operations import producer, walk
from mlir_sched.program.rewrites.convolution_ops import (
    FILTER_TO_LAST,
    PLANE_FIRST,
    PLANE_LAST,
    TO_FIRST,
    TO_LAST,
    dilations_of,
    is_static_f32,
    layouts,
    strides_of,
)
from mlir_sched.program.rewrites.layout.added_bias import AddedBias
from mlir_sched.program.rewrites.layout.counted_indices import ConstantRanges, RowsInOrder
from mlir_sched.program.rewrites.layout.gather import ChannelsLastGather
from mlir_sched.program.rewrites.layout.global_mean import GlobalMean
from mlir_sched.program.rewrites.layout.images import ChannelsLastConcat, ChannelsLastPadding
from mlir_sched.program.rewrites.linalg_ops import (
    COLLAPSE,
    EXPAND,
    barrier,
    collapse,
    expand,
    generic,
    maps_of,
    multiply_add,
    transposed,
)
from mlir_sched.program.rewrites.products.unbatched import PASS as UNBATCH
from mlir_sched.program.rewrites.replacement import mark, ops_named, require_number
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.site_rewrite import OpRewrite, OpSite

MIN_CONVOLUTIONS = 2
"""Convolutions of a program below which no transposes cancel."""
PASS = "iree-preprocessing-convert-conv-to-channels-last"
"""IREE's pass, on every ``util.func`` (ConvertConvToChannelsLast.cpp)."""
FUSION = "iree-dispatch-creation-elementwise-op-fusion"
"""IREE's pass that fuses element-wise ops (ElementwiseOpFusion.cpp), which IREE runs later anyhow. The two ops of
``x * sigmoid(x)`` both read ``x``, so that no transpose moves through them unless they are fused first."""

TRANSPOSE = "linalg.transpose"

CANCELLATION = (
    "iree-dispatch-creation-fold-unit-extent-dims-for-func",
    UNBATCH,
    "iree-global-opt-propagate-linalg-transpose",
)
"""IREE's passes that move transposes until they cancel (PropagateLinalgTranspose.cpp). Indexing maps with constants, as
for broadcast dims of size 1, crash the last pass in one run of ten; the first pass removes them. The broadcasts of the
weights of linear layers are gone before transposes move through them. IREE runs all three anyhow, in this order, after
the preprocessing phase."""


@dataclass(frozen=True)
class Form:
    """The channels-last form of an op that the pass leaves channels first.

    Attributes:
        name: Name of the op, without the dialect, which is also its builder's.
        filter: Order of the dims of its second operand.
    """

    name: str
    filter: tuple[int, ...]

    def build(self, *operands: Any, **attributes: Any) -> Any:
        """Return the op's result."""
        result = getattr(linalg, self.name)(*operands, **attributes)
        return result if isinstance(result, ir.Value) else result.result


FORMS = {
    "linalg.depthwise_conv_2d_nchw_chw": Form("depthwise_conv_2d_nhwc_hwc", (1, 2, 0)),
    PLANE_FIRST: Form("conv_2d_nhwc_hwcf", FILTER_TO_LAST),
    "linalg.conv_1d_ncw_fcw": Form("conv_1d_nwc_wcf", (2, 1, 0)),
    "linalg.depthwise_conv_1d_ncw_cw": Form("depthwise_conv_1d_nwc_wc", (1, 0)),
    "linalg.pooling_nchw_max": Form("pooling_nhwc_max", (0, 1)),
    "linalg.pooling_nchw_sum": Form("pooling_nhwc_sum", (0, 1)),
}
"""By the name of the channels-first op."""


GROUPED_FIRST = "linalg.conv_2d_ngchw_gfchw"
"""The grouped convolution over images (batch, groups, channels, rows, columns)."""
CHANNELS = [[0], [1, 2], [3], [4]]
"""Which dims of such an image are one dim, its channels, outside of the convolution."""
CHANNELS_BEHIND = [[0], [1], [2], [3, 4]]
"""Those of the image with channels last."""


@dataclass(frozen=True)
class ChannelsLast(OpRewrite[OpSite]):
    """Computes the convolutions and poolings of a network channels last, those with one or two spatial dimensions.

    Attributes:
        cancel: Whether the transposes are cancelled at once, for another rewrite that comes after this one: IREE would
            fold transposes into the generic ops that the other rewrite makes.
    """

    name = "channels_last"
    cancel: bool = False

    def followed(self) -> ChannelsLast:
        """Return the rewrite that cancels transposes at once."""
        return ChannelsLast(cancel=True)

    def requires(self, program: ir.Module) -> tuple[ProgramRewrite, ...]:
        """Return the rewrites of what transposes would not move through, as it is."""
        enlarging = ChannelsLastGather()
        images = (ConstantRanges(), enlarging, ChannelsLastConcat()) if enlarging.applies(program) else ()
        return AddedBias(), GlobalMean(), ChannelsLastPadding(), RowsInOrder(), *images

    def applies(self, program: ir.Module) -> bool:
        """Say whether the program has several convolutions to convert."""
        if self.cancel and not all(map(_can_be_moved_through, walk(program.operation))):
            return False
        convolutions = [op for op in walk(program.operation) if _is_channels_first(op) and _is_convertible(op)]
        return len(convolutions) >= MIN_CONVOLUTIONS

    def sites(self, program: ir.Module) -> list[OpSite]:
        """Return the ops that IREE's pass leaves channels first, and the convolutions with one tap and a stride."""
        return [OpSite(op) for op in walk(program.operation) if _is_left(op) and _is_convertible(op)]

    def compute(self, site: OpSite, *inputs: Any) -> Any:
        """Return the op's result, computed channels last and transposed back."""
        if site.op.name == GROUPED_FIRST:
            return _grouped(site.op, *inputs)
        image, second, init = inputs
        spatial = image.type.rank - 2
        strides, dilations = strides_of(site.op, spatial), dilations_of(site.op, spatial)
        to_last, to_first = layouts(spatial)
        image, init = transposed(image, to_last), transposed(init, to_last)
        form = FORMS[site.op.name]
        taps = transposed(second, form.filter) if form.filter != (0, 1) else second
        if site.op.name == PLANE_FIRST:
            image, strides = _read_pixels(image, init, strides), [1, 1]
        return transposed(form.build(image, taps, outs=[init], strides=strides, dilations=dilations), to_first)

    def marked(self, result: Any) -> Any:
        """Return the op in front of the last transpose and the reshapes beside it, which may be cancelled."""
        op = producer(result)
        while op.name in (TRANSPOSE, COLLAPSE, EXPAND):
            op = producer(op.operands[0])
        return op

    def emit(self, module: Any, sites: Sequence[Sequence[OpSite]], program: ir.Module) -> Any:
        """Emit IREE's passes behind the replacements; they fail unless all convolutions are channels last then."""
        module, any_op = super().emit(module, sites, program), transform.AnyOpType.get()
        for name in (FUSION, PASS):
            transform.ApplyRegisteredPassOp(any_op, ops_named(module, "util.func"), name)
        names = [op.name for op in walk(program.operation)]
        require_number(ops_named(module, PLANE_LAST), names.count(PLANE_FIRST) + names.count(PLANE_LAST))
        mark(ops_named(module, PLANE_LAST), self.name)
        for name in CANCELLATION if self.cancel else ():
            transform.ApplyRegisteredPassOp(any_op, ops_named(module, "util.func"), name)
        return module


def _is_channels_first(op: Any) -> bool:
    """Say whether an op is a convolution with channels first, which is not grouped."""
    return "conv_1d_ncw" in op.name or "conv_2d_nchw" in op.name


def _is_left(op: Any) -> bool:
    """Say whether IREE's pass leaves an op channels first, or makes slow code of it."""
    return op.name == GROUPED_FIRST or (op.name in FORMS and (op.name != PLANE_FIRST or _is_pointwise(op)))


def _grouped(op: Any, image: Any, taps: Any, init: Any) -> Any:
    """Return the result of a grouped convolution, computed channels last and transposed back.

    The filters of a group are innermost, in the result and in the taps.

    Args:
        op: The convolution.
        image, init: Tensors of dims (batch, groups, channels or filters, rows, columns).
        taps: A tensor of dims (groups, filters, channels, rows, columns).
    """
    (down, right), (below, beside) = strides_of(op, 2), dilations_of(op, 2)
    n, y, x, g, f, i, j, c = (ir.AffineExpr.get_dim(dim) for dim in range(8))
    places = [n, y * down + i * below, x * right + j * beside, g, c], [g, i, j, c, f], [n, y, x, g, f]
    maps = [ir.AffineMap.get(8, 0, exprs) for exprs in places]
    kinds = ["parallel"] * 5 + ["reduction"] * 3
    operands = [_groups_last(image), transposed(taps, (0, 3, 4, 2, 1))]
    result = generic(operands, _groups_last(init), maps, kinds, multiply_add)
    return expand(transposed(collapse(result, CHANNELS_BEHIND), TO_FIRST), CHANNELS, init.type.shape)


def _groups_last(image: Any) -> Any:
    """Return an image of dims (batch, groups, channels, rows, columns) with groups and channels last."""
    batch, groups, channels, rows, columns = image.type.shape
    shape = [batch, rows, columns, groups, channels]
    return expand(transposed(collapse(image, CHANNELS), TO_LAST), CHANNELS_BEHIND, shape)


def _is_convertible(op: Any) -> bool:
    return all(map(is_static_f32, op.operands))


def _can_be_moved_through(op: Any) -> bool:
    """Say whether IREE can move transposes through an op: its indexing maps are dims, and zeros for dims of size 1."""
    if op.name != "linalg.generic" or "reduction" in str(op.attributes["iterator_types"]):
        return True
    return all(
        isinstance(expr, ir.AffineDimExpr) or (isinstance(expr, ir.AffineConstantExpr) and size == 1)
        for operand, each in zip(op.operands, maps_of(op), strict=True)
        if isinstance(operand.type, ir.RankedTensorType)
        for expr, size in zip(each.results, operand.type.shape, strict=True)
    )


def _is_pointwise(op: Any) -> bool:
    """Say whether a convolution has one tap and strides above 1."""
    return list(op.operands[1].type.shape[2:]) == [1, 1] and max(strides_of(op, 2)) > 1


def _read_pixels(image: Any, init: Any, strides: Sequence[int]) -> Any:
    """Return the pixels that a convolution with one tap reads, one per result.

    Args:
        image, init: Tensors of dims (batch, rows, columns, channels).
        strides: Along rows and columns.
    """
    batch, rows, columns, _ = init.type.shape
    n, y, x, c = (ir.AffineExpr.get_dim(dim) for dim in range(4))
    maps = [ir.AffineMap.get(4, 0, [n, y * strides[0], x * strides[1], c]), ir.AffineMap.get_identity(4)]
    empty = tensor.empty([batch, rows, columns, image.type.shape[-1]], image.type.element_type)
    return barrier(generic([barrier(image)], empty, maps, ["parallel"] * 4, lambda value, _: value))
