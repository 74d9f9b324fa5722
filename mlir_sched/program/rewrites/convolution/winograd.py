"""Winograd's minimal filtering: convolutions of 3x3 taps and stride 1 as fewer products in a transformed space.

Tiles of the image are transformed, multiplied point by point with the transformed filter (a batched matrix product of
pixels and channels), and transformed back: ``(m + 2)^2`` products per channel and tile of ``m x m`` results instead of
``9 m^2``. A constant filter is transformed at compile time.

Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2016), F(2x2, 3x3) and F(4x4, 3x3).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from iree.compiler import ir
from iree.compiler.dialects import arith, linalg

from mlir_sched.compiler.flags import GROWTH
from mlir_sched.program.rewrites.constant_values import with_constant_weights
from mlir_sched.program.rewrites.convolution_ops import (
    FILTER_TO_LAST,
    PLANE_FIRST,
    PLANE_LAST,
    TO_LAST,
    dilations_of,
    is_static_f32,
    strides_of,
)
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast
from mlir_sched.program.rewrites.linalg_ops import (
    added,
    barrier,
    collapse,
    expand,
    generic,
    multiply_add,
    product_and_sum,
    transposed,
    zeros,
)
from mlir_sched.program.rewrites.pipeline import applies, rewritten
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.site_kind import SiteKind
from mlir_sched.program.rewrites.site_rewrite import OpRewrite, OpSite
from mlir_sched.program.rewrites.staged_program import StagedProgram
from mlir_sched.program.rewrites.walked_program import WalkedProgram

Matrix = Sequence[Sequence[float]]
TAPS = 3


@dataclass(frozen=True)
class Algorithm:
    """F(m x m, 3 x 3): one dimension's matrices.

    Attributes:
        image: Points x pixels.
        filter: Points x taps.
        result: Results x points.
    """

    image: Matrix
    filter: Matrix
    result: Matrix

    @property
    def results(self) -> int:
        """Results per tile and dimension."""
        return len(self.result)

    @property
    def points(self) -> int:
        """Points, and pixels, per tile and dimension."""
        return len(self.image)


ALGORITHMS = (
    Algorithm(
        image=(
            (4, 0, -5, 0, 1, 0), (0, -4, -4, 1, 1, 0), (0, 4, -4, -1, 1, 0),
            (0, -2, -1, 2, 1, 0), (0, 2, -1, -2, 1, 0), (0, 4, 0, -5, 0, 1),
        ),
        filter=(
            (1 / 4, 0, 0), (-1 / 6, -1 / 6, -1 / 6), (-1 / 6, 1 / 6, -1 / 6),
            (1 / 24, 1 / 12, 1 / 6), (1 / 24, -1 / 12, 1 / 6), (0, 0, 1),
        ),
        result=((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)),
    ),
    Algorithm(
        image=((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
        filter=((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
        result=((1, 1, 1, 0), (0, 1, -1, -1)),
    ),
)  # fmt: skip
"""F(4x4, 3x3) and F(2x2, 3x3)."""
MIN_CHANNELS = 32
"""Input and output channels below which the transforms cost more than the products that are saved."""
MIN_TILES = 16
"""Tiles below which reading the transformed filter takes longer than multiplying with it."""


@dataclass(frozen=True)
class WinogradSite(OpSite):
    """One convolution; operands are image, filter, init."""

    algorithm: Algorithm

    @property
    def channels_first(self) -> bool:
        """Whether it is ``nchw_fchw``, else ``nhwc_hwcf``."""
        return bool(self.op.name == PLANE_FIRST)

    @property
    def shape(self) -> str:
        """Rows and columns of the result, channels, filters: ``56x56x64x64``."""
        filter_, result = self.op.operands[1].type.shape, self.op.operands[2].type.shape
        if self.channels_first:
            filter_, result = [filter_[dim] for dim in FILTER_TO_LAST], [result[dim] for dim in TO_LAST]
        return "x".join(map(str, (*result[1:3], *filter_[2:])))


@dataclass(frozen=True)
class Winograd(OpRewrite[WinogradSite]):
    """Transforms image and filter, multiplies point by point, and transforms the products back.

    A transformed filter is up to four times as large as the filter; IREE computes such constants in every call unless a
    flag allows constants to grow that much.

    Attributes:
        shapes: The convolutions to compute so, by :attr:`WinogradSite.shape`; None for all.
    """

    flags = (f"{GROWTH}=1073741824",)
    shapes: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """``winograd``, with the shapes if they are chosen."""
        return self.symbol if self.shapes is None else f"{self.symbol}({','.join(self.shapes)})"

    @property
    def symbol(self) -> str:
        """Name of the rewrite's sequence."""
        return "winograd"

    def sites(self, program: WalkedProgram) -> list[WinogradSite]:
        """Return the convolutions that the algorithms save time for and whose filters are constants."""
        found = [site for op in program.ops if (site := _site(op)) is not None]
        wanted = [site for site in found if self.shapes is None or site.shape in self.shapes]
        return with_constant_weights(wanted, program)

    def compute(self, site: WinogradSite, *inputs: Any) -> Any:
        """Return the convolution; one with channels first is computed channels last, between two transposes.

        The op of the second transpose then adds the init.
        """
        image, taps, init = inputs
        if not site.channels_first:
            return self._channels_last(site, image, taps, init)
        image, taps = barrier(transposed(image, TO_LAST)), transposed(taps, FILTER_TO_LAST)
        start = zeros([init.type.shape[dim] for dim in TO_LAST], init.type.element_type)
        return added(init, barrier(self._channels_last(site, image, taps, start)), TO_LAST)

    def _channels_last(self, site: WinogradSite, image: Any, taps: Any, init: Any) -> Any:
        """Return a convolution channels last.

        IREE 3.13 crashes on the transform of an image with padding fused into it: a barrier keeps the two apart.
        """
        batch, height, width, filters = init.type.shape
        size = site.algorithm.results
        rows, columns, points = height // size, width // size, site.algorithm.points
        tiles = collapse(_image(site.algorithm, barrier(image), rows, columns), [[0, 1], [2, 3, 4], [5]])
        weights = collapse(_filter(site.algorithm, taps), [[0, 1], [2], [3]])
        start = zeros([*tiles.type.shape[:2], filters], tiles.type.element_type)
        products = linalg.batch_matmul(tiles, weights, outs=[start])
        products = expand(products, [[0, 1], [2, 3, 4], [5]], [points, points, batch, rows, columns, filters])
        return _result(site.algorithm, products, init)


@dataclass(frozen=True)
class Convolutions(SiteKind):
    """The convolutions of a network whose layout is decided, which computes every convolution directly.

    Winograd's algorithms may be faster for some of its shapes. Which ones depends on the scripts that are found for
    both ways.
    """

    own, other = "direct", "winograd"

    def rewrite_name(self, shape: str) -> str:
        """Return the name of the rewrite of a shape."""
        return Winograd((shape,)).name

    def has_choice(self, rewrites: Sequence[ProgramRewrite]) -> bool:
        """Say whether the network is made channels last first."""
        return isinstance(next(iter(rewrites), None), ChannelsLast)

    def with_other(self, rewrites: tuple[ProgramRewrite, ...], shapes: tuple[str, ...]) -> tuple[ProgramRewrite, ...]:
        """Return the rewrites with Winograd's algorithms right behind the layout."""
        layout, *others = rewrites
        return layout, Winograd(shapes), *others

    def shapes(self, program: StagedProgram) -> list[str]:
        """Return the shapes of the convolutions that Winograd's algorithms can compute, channels last."""
        layout = (ChannelsLast(),)
        if not applies(layout, program):
            return []
        return [site.shape for site, *_ in rewritten(layout, program).found(Winograd()).values()]


def _site(op: Any) -> WinogradSite | None:
    if op.name not in (PLANE_LAST, PLANE_FIRST):
        return None
    kinds = [operand.type for operand in op.operands]
    if not all(map(is_static_f32, op.operands)):
        return None
    if max(*strides_of(op, 2), *dilations_of(op, 2)) > 1:
        return None
    filter_, result = kinds[1].shape, kinds[2].shape
    if op.name == PLANE_FIRST:
        filter_, result = [filter_[dim] for dim in FILTER_TO_LAST], [result[dim] for dim in TO_LAST]
    (*window, channels, filters), (batch, height, width, _) = filter_, result
    if window != [TAPS, TAPS] or min(channels, filters) < MIN_CHANNELS:
        return None
    for algorithm in ALGORITHMS:
        size = algorithm.results
        if height % size == width % size == 0 and batch * height * width >= MIN_TILES * size * size:
            return WinogradSite(op, algorithm)
    return None


def _image(algorithm: Algorithm, image: Any, rows: int, columns: int) -> Any:
    """Return the tiles of the image, which overlap by two pixels, transformed: first their rows, then their columns.

    Dims: points (two), batch, tiles (two), channels.
    """
    batch, _, width, channels = image.type.shape
    matrix = _constant(algorithm.image)
    size, points, element = algorithm.results, algorithm.points, image.type.element_type
    i, n, p, x, c, a = (ir.AffineExpr.get_dim(d) for d in range(6))
    maps = [[n, p * size + a, x, c], [i, a], [i, n, p, x, c]]
    by_rows = _sum(image, matrix, zeros([points, batch, rows, width, channels], element), maps)
    i, j, n, p, q, c, b = (ir.AffineExpr.get_dim(d) for d in range(7))
    maps = [[i, n, p, q * size + b, c], [j, b], [i, j, n, p, q, c]]
    return _sum(by_rows, matrix, zeros([points, points, batch, rows, columns, channels], element), maps)


def _filter(algorithm: Algorithm, taps: Any) -> Any:
    """Return the transformed filter. Dims: points (two), input channels, output channels."""
    matrix = _constant(algorithm.filter)
    by_rows = product_and_sum(taps, matrix, "abcf", "ia", "ibcf")
    return product_and_sum(by_rows, matrix, "ibcf", "jb", "ijcf")


def _result(algorithm: Algorithm, products: Any, init: Any) -> Any:
    """Return the products transformed back, both dimensions at once, plus ``init``."""
    back = np.array(algorithm.result, dtype=np.float32)
    matrix = _constant(np.einsum("yi,xj->yxij", back, back))
    size = algorithm.results
    batch, height, width, filters = init.type.shape
    shape = [batch, height // size, size, width // size, size, filters]
    groups = [[0], [1, 2], [3, 4], [5]]
    n, p, y, q, x, f, i, j = (ir.AffineExpr.get_dim(d) for d in range(8))
    maps = [[i, j, n, p, q, f], [y, x, i, j], [n, p, y, q, x, f]]
    return collapse(_sum(products, matrix, expand(init, groups, shape), maps), groups)


def _sum(values: Any, matrix: Any, init: Any, maps: Sequence[Sequence[Any]]) -> Any:
    """Return ``init`` plus the sum of products over the loops that come after those of the result."""
    parallel = len(maps[-1])
    loops = 1 + max(ir.AffineDimExpr(expr).position for expr in (*maps[-1], *maps[1]))
    affine = [ir.AffineMap.get(loops, 0, list(exprs)) for exprs in maps]
    kinds = ["parallel"] * parallel + ["reduction"] * (loops - parallel)
    return generic([values, matrix], init, affine, kinds, multiply_add)


def _constant(matrix: Any) -> Any:
    """Return a constant tensor."""
    values = np.array(matrix, dtype=np.float32)
    attribute = ir.DenseElementsAttr.get(values)
    return arith.constant(attribute.type, attribute)
