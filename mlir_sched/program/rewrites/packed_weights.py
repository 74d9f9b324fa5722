"""Products with constant weights: the weights are packed, once, in the order in which a script reads them.

Convolutions with channels last and matrix products multiply rows of a matrix by columns of the weights. A script
computes tiles of some rows by one block of columns. The rewrite stores each block apart: for every element of the
reduction one after the other, the block's columns lie side by side. A tile then reads its weights as one contiguous
stream, while weights in the model's order are copied first, or are read with a stride of a power of two, which L1
caches and prefetchers serve badly. Most weights of a model come from memory in every call, so the order matters most in
the last layers, which have large weights and few rows (ResNet-50, 3x3 over 512 channels: 4.0 ms in the model, 1.0
packed; 1x1, 49 rows, 1024 by 2048: 1.7 ms, 0.85 packed; Zen 5).

Without scripts IREE 3.13 compiles packed products 3 to 30 times slower than others: their time before tuning says
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import walk
from mlir_sched.program.rewrites.constants import with_constant_weights
from mlir_sched.program.rewrites.convolution_ops import CHANNELS_LAST, dilations_of, is_static_f32, strides_of
from mlir_sched.program.rewrites.linalg_ops import (
    barrier,
    collapse,
    dims_map,
    expand,
    generic,
    multiply_add,
    transposed,
)
from mlir_sched.program.rewrites.site_rewrite import OpRewrite, OpSite
from mlir_sched.targets.kind import DEFAULT

MATMULS = ("linalg.matmul", "linalg.batch_matmul")
BLOCKS = (32, 16)
"""Columns of a block, the first that divides their number: two vectors or one of 512 bits."""
MIN_ROWS = 6
"""Rows below which a product reads its weights once, in any order, as fast as memory gives them."""
MIN_WEIGHTS = 2048
"""Elements of weights below which they stay in the L1 cache."""
MIN_WINDOW_BYTES = 1 << 20
"""Bytes of a filter with more than one tap above which it is packed. Its channels are contiguous as it is, so a filter
that stays in the L2 cache is read as fast."""


@dataclass(frozen=True)
class ProductSite(OpSite):
    """One product of a program; operands are rows, weights, init."""

    @property
    def weights(self) -> list[int]:
        """Sizes of the weights: (taps of every dimension, reduction, columns)."""
        shape = list(self.op.operands[1].type.shape)
        return shape[-2:] if self.op.name in MATMULS else shape

    @property
    def block(self) -> int:
        """Columns of a block; all columns where no good block divides them."""
        columns = self.weights[-1]
        return next((block for block in BLOCKS if columns % block == 0), columns)


class PackedWeights(OpRewrite[ProductSite]):
    """Packs constant weights of convolutions and matrix products in blocks of columns."""

    name = "packed_weights"
    refines = DEFAULT

    def sites(self, program: ir.Module) -> list[ProductSite]:
        """Return the products with constant weights for which another order pays."""
        found = [ProductSite(op) for op in walk(program.operation) if op.name in (*CHANNELS_LAST, *MATMULS)]
        return with_constant_weights([site for site in found if _pays(site)], program)

    def compute(self, site: ProductSite, *inputs: Any) -> Any:
        """Return the product with packed weights."""
        rows, weights, init = inputs
        *taps, reduction, columns = site.weights
        if weights.type.rank > len(site.weights):
            weights = collapse(weights, [[0, 1], [2]])
        outer = list(range(len(taps) + 1))
        blocks = [columns // site.block, site.block]
        split = expand(weights, [*([d] for d in outer), [len(outer), len(outer) + 1]], [*taps, reduction, *blocks])
        packed = barrier(transposed(split, [len(outer), *outer, len(outer) + 1]))
        *others, _ = init.type.shape
        groups = [*([d] for d in range(len(others))), [len(others), len(others) + 1]]
        return collapse(_product(site, rows, packed, expand(init, groups, [*others, *blocks])), groups)


def _product(site: ProductSite, rows: Any, packed: Any, init: Any) -> Any:
    """Return the product as a ``linalg.generic``.

    Its loops are those of ``init``, whose last two are the blocks and a block's columns, then taps and reduction.
    """
    parallel, taps = init.type.rank, len(site.weights) - 2
    loops = parallel + taps + 1
    dims = [ir.AffineExpr.get_dim(place) for place in range(loops)]
    batch, *pixels = dims[: parallel - 2]
    window, reduction = dims[parallel:-1], dims[-1]
    if taps:
        strides, dilations = strides_of(site.op, taps), dilations_of(site.op, taps)
        steps = zip(pixels, strides, window, dilations, strict=True)
        pixels = [pixel * stride + tap * dilation for pixel, stride, tap, dilation in steps]
    maps = [
        [batch, *pixels, reduction],
        [dims[parallel - 2], *window, reduction, dims[parallel - 1]],
        dims[:parallel],
    ]
    kinds = ["parallel"] * parallel + ["reduction"] * (taps + 1)
    affine = [ir.AffineMap.get(loops, 0, exprs) for exprs in maps]
    return generic([rows, packed], init, affine, kinds, multiply_add)


def _pays(site: ProductSite) -> bool:
    op = site.op
    if not all(map(is_static_f32, op.operands)):
        return False
    *taps, reduction, columns = site.weights
    if op.name in MATMULS:
        batch, default = op.operands[1].type.shape[:-2], _reads_as_written(op)
        if batch not in ([], [1]) or not default:
            return False
    rows = prod(op.operands[2].type.shape[:-1])
    elements = prod(taps) * reduction * columns
    least = MIN_WEIGHTS if prod(taps) == 1 else MIN_WINDOW_BYTES // 4 + 1
    return rows >= MIN_ROWS and columns >= BLOCKS[-1] and elements >= least


def _reads_as_written(op: Any) -> bool:
    """Say whether a matrix product reads its operands without a transposition or broadcast of its own."""
    if "indexing_maps" not in op.attributes:
        return True
    maps = [ir.AffineMapAttr(attribute).value for attribute in ir.ArrayAttr(op.attributes["indexing_maps"])]
    loops = maps[0].n_dims
    *batch, row, column, reduction = range(loops)
    wanted = [[*batch, row, reduction], [*batch, reduction, column], [*batch, row, column]]
    return all(each == dims_map(loops, dims) for each, dims in zip(maps, wanted, strict=True))
