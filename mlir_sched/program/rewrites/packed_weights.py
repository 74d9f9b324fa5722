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
from mlir_sched.program.rewrites.composition import rewritten
from mlir_sched.program.rewrites.constants import with_constant_weights
from mlir_sched.program.rewrites.convolution_ops import CHANNELS_LAST, dilations_of, is_static_f32, strides_of
from mlir_sched.program.rewrites.linalg_ops import (
    barrier,
    collapse,
    dims_map,
    expand,
    generic,
    maps_of,
    multiply_add,
    transposed,
)
from mlir_sched.program.rewrites.replacement import append_in_turn
from mlir_sched.program.rewrites.reshaped_padding import EXPAND
from mlir_sched.program.rewrites.site_rewrite import OpRewrite, OpSite
from mlir_sched.program.rewrites.unbatched_products import UnbatchedProducts
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
        if self.op.name not in MATMULS:
            return shape
        *_, reduction, columns = shape
        return [columns, reduction] if self.is_transposed else [reduction, columns]

    @property
    def is_transposed(self) -> bool:
        """Whether it is a matrix product that reads the weights transposed: (columns, reduction)."""
        return self.op.name in MATMULS and _reads(self.op, transposed_weights=True)

    @property
    def block(self) -> int:
        """Columns of a block; all columns where no good block divides them."""
        columns = self.weights[-1]
        return next((block for block in BLOCKS if columns % block == 0), columns)


class PackedWeights(OpRewrite[ProductSite]):
    """Packs constant weights of convolutions and matrix products in blocks of columns.

    Products of a batch of matrices with the same weights are one product first (:mod:`.unbatched_products`).
    """

    name = "packed_weights"
    refines = DEFAULT

    def applies(self, program: ir.Module) -> bool:
        """Say whether another order of some weights pays."""
        return super().applies(_unbatched(program))

    def append(self, library: ir.Module, program: ir.Module) -> str:
        """Append the rewrite; see :meth:`ProgramRewrite.append`."""
        unbatched = _unbatched(program)
        if unbatched is program:
            return super().append(library, program)
        symbols = [UnbatchedProducts().append(library, program), super().append(library, unbatched)]
        return append_in_turn(library, symbols)

    def sites(self, program: ir.Module) -> list[ProductSite]:
        """Return the products with constant weights for which another order pays."""
        found = [ProductSite(op) for op in walk(program.operation) if op.name in (*CHANNELS_LAST, *MATMULS)]
        return with_constant_weights([site for site in found if _pays(site)], program)

    def compute(self, site: ProductSite, *inputs: Any) -> Any:
        """Return the product with packed weights."""
        rows, weights, init = inputs
        *taps, reduction, columns = site.weights
        if sizes := _split_rows(site.op):
            merged = [[*range(len(sizes))], [len(sizes)]]
            rows, init = (expand(value, merged, [*sizes, value.type.shape[-1]]) for value in (rows, init))
        if weights.type.rank > len(site.weights):
            weights = collapse(weights, [[0, 1], [2]])
        if site.is_transposed:
            weights = transposed(weights, (1, 0))
        outer = list(range(len(taps) + 1))
        blocks = [columns // site.block, site.block]
        split = expand(weights, [*([d] for d in outer), [len(outer), len(outer) + 1]], [*taps, reduction, *blocks])
        packed = barrier(transposed(split, [len(outer), *outer, len(outer) + 1]))
        *others, _ = init.type.shape
        groups = [*([d] for d in range(len(others))), [len(others), len(others) + 1]]
        result = collapse(_product(site, rows, packed, expand(init, groups, [*others, *blocks])), groups)
        return collapse(result, merged) if sizes else result


def _unbatched(program: ir.Module) -> ir.Module:
    """Return a program after :class:`UnbatchedProducts`; the program itself where that has nothing to do."""
    first = UnbatchedProducts()
    return rewritten(first, program) if first.applies(program) else program


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


def _split_rows(op: Any) -> list[int]:
    """Return the sizes into which the only reader of a matrix product splits its rows; empty where nothing does.

    A product that keeps these rows apart is one dispatch with the reader: IREE does not move the reshape of a block's
    columns past that of the rows.
    """
    readers = [use.owner for use in op.result.uses]
    if op.name != "linalg.matmul" or len(readers) != 1 or readers[0].name != EXPAND:
        return []
    *sizes, columns = readers[0].result.type.shape
    return sizes if len(sizes) > 1 and columns == op.result.type.shape[-1] else []


def _pays(site: ProductSite) -> bool:
    op = site.op
    if not all(map(is_static_f32, op.operands)):
        return False
    *taps, reduction, columns = site.weights
    if op.name in MATMULS:
        batch = op.operands[1].type.shape[:-2]
        if batch not in ([], [1]) or not (site.is_transposed or _reads(op)):
            return False
    rows = prod(op.operands[2].type.shape[:-1])
    elements = prod(taps) * reduction * columns
    least = MIN_WEIGHTS if prod(taps) == 1 else MIN_WINDOW_BYTES // 4 + 1
    return rows >= MIN_ROWS and columns >= BLOCKS[-1] and elements >= least


def _reads(op: Any, *, transposed_weights: bool = False) -> bool:
    """Say whether a matrix product reads its operands as they are, the weights transposed or not."""
    if "indexing_maps" not in op.attributes:
        return not transposed_weights
    maps = maps_of(op)
    loops = maps[0].n_dims
    *batch, row, column, reduction = range(loops)
    weights = [*batch, column, reduction] if transposed_weights else [*batch, reduction, column]
    wanted = [[*batch, row, reduction], weights, [*batch, row, column]]
    return all(each == dims_map(loops, dims) for each, dims in zip(maps, wanted, strict=True))
