"""Products whose weights are packed in blocks (:mod:`.packed`): their sites in a program, and their ops."""

from dataclasses import dataclass
from math import prod
from typing import Any

from iree.compiler import ir

from mlir_sched.program.rewrites.convolution_ops import dilations_of, is_static_f32, strides_of
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
from mlir_sched.program.rewrites.site_rewrite import OpSite

BATCH_MATMUL = "linalg.batch_matmul"
MATMULS = ("linalg.matmul", BATCH_MATMUL)
BLOCKS = (32, 16)
"""Columns of a block, the first that divides their number: two vectors or one of 512 bits."""
MIN_ROWS = 6
"""Rows below which a product reads its weights once, in any order, as fast as memory gives them."""
MIN_WEIGHTS = 2048
"""Elements of weights below which they stay in the L1 cache."""
MIN_BATCH_COLUMNS = 128
"""Columns below which the weights of a batch of products are left as they are: the fewest with which Winograd's
products gain."""
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
    def batch(self) -> int:
        """How many matrices of weights there are: 1 but for a batch of matrix products, each with its own."""
        return int(self.op.operands[1].type.shape[0]) if self.op.name == BATCH_MATMUL else 1

    @property
    def is_transposed(self) -> bool:
        """Whether it is a matrix product that reads the weights transposed: (columns, reduction)."""
        return self.op.name in MATMULS and _reads(self.op, transposed_weights=True)

    @property
    def block(self) -> int:
        """Columns of a block; all columns where no good block divides them."""
        columns = self.weights[-1]
        return next((block for block in BLOCKS if columns % block == 0), columns)


def packed(site: ProductSite, weights: Any) -> Any:
    """Return the weights of a product as ([batch,] blocks, taps, reduction, columns of a block), made once."""
    *taps, reduction, columns = site.weights
    batch = [site.batch] if site.batch > 1 else []
    if weights.type.rank > len(batch) + len(site.weights):
        weights = collapse(weights, [[0, 1], [2]])
    if site.is_transposed:
        weights = transposed(weights, [*range(len(batch)), len(batch) + 1, len(batch)])
    sizes = [*batch, *taps, reduction]
    last = len(sizes)
    split = expand(
        weights, [*([dim] for dim in range(last)), [last, last + 1]], [*sizes, columns // site.block, site.block]
    )
    order = [*range(len(batch)), last, *range(len(batch), last), last + 1]
    return barrier(transposed(split, order))


def product(site: ProductSite, rows: Any, weights: Any, init: Any, *, joined: bool = False) -> Any:
    """Return a product with packed weights: a ``linalg.generic`` over the loops of the result, taps and reduction.

    Args:
        site: The product.
        rows: Its rows, or its image; with ``joined``, several of them one behind the other, along an outermost dim.
        weights: Its packed weights; with ``joined``, the reduction is two dims: images, and channels of an image.
        init: What the sums start with.
        joined: Whether the rows are those of several images, whose channels are summed over one after the other.
    """
    *others, columns = init.type.shape
    groups = [*([d] for d in range(len(others))), [len(others), len(others) + 1]]
    sums = expand(init, groups, [*others, columns // site.block, site.block])
    parallel, taps = sums.type.rank, len(site.weights) - 2
    loops = parallel + taps + (2 if joined else 1)
    dims = [ir.AffineExpr.get_dim(place) for place in range(loops)]
    batch, *pixels = dims[: parallel - 2]
    window, reduction = dims[parallel : parallel + taps], dims[parallel + taps :]
    if taps:
        strides, dilations = strides_of(site.op, taps), dilations_of(site.op, taps)
        steps = zip(pixels, strides, window, dilations, strict=True)
        pixels = [pixel * stride + tap * dilation for pixel, stride, tap, dilation in steps]
    *images, channel = reduction
    maps = [
        [*images, batch, *pixels, channel],
        [*([batch] if site.batch > 1 else []), dims[parallel - 2], *window, *reduction, dims[parallel - 1]],
        dims[:parallel],
    ]
    kinds = ["parallel"] * parallel + ["reduction"] * (loops - parallel)
    affine = [ir.AffineMap.get(loops, 0, exprs) for exprs in maps]
    return collapse(generic([rows, weights], sums, affine, kinds, multiply_add), groups)


def pays(site: ProductSite) -> bool:
    """Say whether packed weights are worth it for a product, if its weights are constants."""
    op = site.op
    if not all(map(is_static_f32, op.operands)):
        return False
    *taps, reduction, columns = site.weights
    if op.name in MATMULS and not (site.is_transposed or _reads(op)):
        return False
    rows = prod(op.operands[2].type.shape[:-1]) // site.batch
    elements = prod(taps) * reduction * columns
    least = MIN_WEIGHTS if prod(taps) == 1 else MIN_WINDOW_BYTES // 4 + 1
    least_columns = BLOCKS[-1] if site.batch == 1 else MIN_BATCH_COLUMNS
    return rows >= MIN_ROWS and columns >= least_columns and elements >= least


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
