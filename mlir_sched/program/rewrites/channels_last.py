"""Networks of channels-first convolutions, computed channels last.

Vectors over output channels suit convolutions of any size, stride and number of taps, but they need the channels of
image, filter and result innermost. IREE's own pass makes channels-last convolutions between transposes of most
two-dimensional convolutions, and its global optimization moves the transposes through padding and element-wise ops
until those of neighbouring convolutions cancel. This rewrite runs the pass, and does the same for the ops that the
pass leaves channels first: depthwise convolutions and poolings. One such op in between would keep its transposes.

A convolution with one tap and a stride above 1 becomes a copy of the pixels that it reads, and a matrix product. Where
its image has another reader, IREE 3.13 keeps the stride in the indexing map of the product, whose loads are then slow
(ResNet-50: 69 ms in place of 1.5).

A convolution alone would keep its transposes, so a program with a single convolution is not rewritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import linalg, tensor, transform

from mlir_sched.attributes import REWRITTEN
from mlir_sched.compiler.operations import walk
from mlir_sched.program.rewrites.convolution_ops import (
    PLANE_FIRST,
    PLANE_LAST,
    TO_FIRST,
    TO_LAST,
    dilations_of,
    is_static_f32,
    strides_of,
)
from mlir_sched.program.rewrites.linalg_ops import (
    barrier,
    collapse,
    dims_map,
    expand,
    generic,
    multiply_add,
    transposed,
)
from mlir_sched.program.rewrites.replacement import ops_named, require_number
from mlir_sched.program.rewrites.site_rewrite import OpRewrite, OpSite

MIN_CONVOLUTIONS = 2
"""Convolutions of a program below which no transposes cancel."""
PASS = "iree-preprocessing-convert-conv-to-channels-last"
"""IREE's pass, on every ``util.func`` (ConvertConvToChannelsLast.cpp)."""


@dataclass(frozen=True)
class Form:
    """The channels-last form of an op that the pass leaves channels first.

    Attributes:
        build: Builder of the op in the linalg dialect.
        filter: Order of the dims of its second operand.
    """

    build: Any
    filter: tuple[int, ...]


FORMS = {
    "linalg.depthwise_conv_2d_nchw_chw": Form(linalg.depthwise_conv_2d_nhwc_hwc, (1, 2, 0)),
    "linalg.pooling_nchw_max": Form(linalg.pooling_nhwc_max, (0, 1)),
    "linalg.pooling_nchw_sum": Form(linalg.pooling_nhwc_sum, (0, 1)),
}
"""By the name of the channels-first op."""


class ChannelsLast(OpRewrite[OpSite]):
    """Computes the two-dimensional convolutions and poolings of a network channels last."""

    name = "channels_last"

    def applies(self, program: ir.Module) -> bool:
        """Say whether the program has several convolutions to convert."""
        convolutions = [op for op in walk(program.operation) if "conv_2d_nchw" in op.name and _is_convertible(op)]
        return len(convolutions) >= MIN_CONVOLUTIONS

    def sites(self, program: ir.Module) -> list[OpSite]:
        """Return the ops that IREE's pass leaves channels first, and the convolutions with one tap and a stride."""
        found = (
            op for op in walk(program.operation) if op.name in FORMS or (op.name == PLANE_FIRST and _is_pointwise(op))
        )
        return [OpSite(op) for op in found if _is_convertible(op)]

    def compute(self, site: OpSite, *inputs: Any) -> Any:
        """Return the op's result, computed channels last and transposed back."""
        image, second, init = inputs
        strides, dilations = strides_of(site.op, 2), dilations_of(site.op, 2)
        image, init = transposed(image, TO_LAST), transposed(init, TO_LAST)
        if site.op.name == PLANE_FIRST:
            return transposed(_product(image, collapse(second, [[0], [1, 2, 3]]), init, strides), TO_FIRST)
        form = FORMS[site.op.name]
        taps = transposed(second, form.filter) if form.filter != (0, 1) else second
        result = form.build(image, taps, outs=[init], strides=strides, dilations=dilations)
        return transposed(result if isinstance(result, ir.Value) else result.result, TO_FIRST)

    def rewrite_rest(self, module: Any, program: ir.Module) -> None:
        """Emit IREE's pass, and a failure of the sequence unless it converts every other convolution."""
        any_op = transform.AnyOpType.get()
        transform.ApplyRegisteredPassOp(any_op, ops_named(module, "util.func"), PASS)
        converted = ops_named(module, PLANE_LAST)
        names = [op.name for op in walk(program.operation)]
        pointwise = sum(site.op.name == PLANE_FIRST for site in self.sites(program))
        require_number(converted, names.count(PLANE_FIRST) + names.count(PLANE_LAST) - pointwise)
        mark = transform.ParamConstantOp(transform.AnyParamType.get(), ir.StringAttr.get(self.name)).result
        transform.AnnotateOp(converted, REWRITTEN, param=mark)


def _is_convertible(op: Any) -> bool:
    return all(map(is_static_f32, op.operands))


def _is_pointwise(op: Any) -> bool:
    """Say whether a convolution has one tap and strides above 1."""
    return list(op.operands[1].type.shape[2:]) == [1, 1] and max(strides_of(op, 2)) > 1


def _product(image: Any, weights: Any, init: Any, strides: Sequence[int]) -> Any:
    """Return a channels-last convolution with one tap: a copy of the pixels that it reads, times the weights.

    Args:
        image, init: Tensors of dims (batch, rows, columns, channels).
        weights: Tensor of dims (output channels, channels).
        strides: Along rows and columns.
    """
    batch, rows, columns, features = init.type.shape
    n, y, x, c = (ir.AffineExpr.get_dim(dim) for dim in range(4))
    maps = [ir.AffineMap.get(4, 0, [n, y * strides[0], x * strides[1], c]), ir.AffineMap.get_identity(4)]
    empty = tensor.empty([batch, rows, columns, image.type.shape[-1]], image.type.element_type)
    read = barrier(generic([image], empty, maps, ["parallel"] * 4, lambda value, _: value))
    pixels = [[0, 1, 2], [3]]
    maps = [dims_map(3, [0, 2]), dims_map(3, [1, 2]), dims_map(3, [0, 1])]
    kinds = ["parallel", "parallel", "reduction"]
    result = generic([collapse(read, pixels), weights], collapse(init, pixels), maps, kinds, multiply_add)
    return expand(result, pixels, [batch, rows, columns, features])
