"""Transposed convolutions that are written as a convolution over an image with zeros between its pixels.

That form multiplies by every inserted zero and reads a mirrored copy of the filter. The rewrite multiplies pixels with
taps: a batched matrix product, over the taps, of the image with each tap's matrix as it is stored. A col2im then
sums the products where they meet in the result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from iree.compiler.dialects import transform

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.convolution.axis import Block
from mlir_sched.program.rewrites.convolution.col2im import Products, col2im
from mlir_sched.program.rewrites.convolution.input_dilation import TransposedSite, extraction, find_sites
from mlir_sched.program.rewrites.linalg_ops import collapse, expand, product_and_sum, slice_of
from mlir_sched.program.rewrites.replacement import match_dag, only_op, operand_of, producer_of
from mlir_sched.program.rewrites.site_rewrite import SiteRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram

_TAPS, _ROWS = "tuv", "mnop"


@dataclass(frozen=True)
class TransposedConvolution(SiteRewrite[TransposedSite]):
    """Rewrites transposed convolutions as products of pixels and taps, and their col2im.

    Attributes:
        split: Number of leading spatial dimensions whose taps are divided into blocks, so that products beyond the
            result's edge are left out. Each block is a matrix product of its own.
    """

    split: int = 0

    @property
    def name(self) -> str:
        """``transposed_convolution``, with the number of dimensions that are split."""
        return "transposed_convolution" + f"_split_{self.split}" * bool(self.split)

    def sites(self, program: WalkedProgram) -> list[TransposedSite]:
        """Return the transposed convolutions that have several blocks of taps in every dimension to split."""
        return [site for site in find_sites(program) if self._wants(site)]

    def _wants(self, site: TransposedSite) -> bool:
        if len(site.axes) < self.split:
            return False
        blocks = [axis.blocks() for axis in site.axes[: self.split]]
        return all(len(along) > 1 for along in blocks)

    def match(self, root: Any, site: TransposedSite) -> None:
        """Emit the comparison of the convolution and of how its image gets its zeros."""
        transform.MatchOperationNameOp(root, [site.convolution.name])
        match_dag(site.convolution, [site.image, site.convolution.operands[1], site.init], root)
        if site.mirroring is not None:
            transform.MatchOperationNameOp(producer_of(root, 1), [site.mirroring.name])

    def inputs(self, op: Any, site: TransposedSite) -> list[Any]:
        """Emit handles on the image without zeros, the filter as stored, and the init."""
        image, taps, init = operand_of(producer_of(op, 0), 0), operand_of(op, 1), operand_of(op, 2)
        if site.mirroring is not None:
            extracts = only_op(producer_of(op, 1), "tensor.extract")
            for number, index in enumerate(list(extraction(site.mirroring).operands)[1:], 1):
                _match_index(producer_of(extracts, number), producer(index))
            taps = operand_of(extracts, 0)
        return [image, taps, init]

    def compute(self, site: TransposedSite, *inputs: Any) -> Any:
        """Return the transposed convolution of an image with taps, plus the init."""
        image, taps, init = inputs
        along = [a.blocks() if d < self.split else [a.whole()] for d, a in enumerate(site.axes)]
        parts = [Products(blocks, _products(blocks, self.split, image, taps)) for blocks in product(*along)]
        return col2im(site.axes, parts, init)


def _products(blocks: Sequence[Block], split: int, image: Any, taps: Any) -> Any:
    """Return the products of a block: dims (taps.., batch, pixels.., filters).

    Dims that stay contiguous in memory when they are sliced are merged into one dim of the matrix product.
    """
    rank = len(blocks)
    tap_groups = _together(range(rank), range(split))
    row_groups = _together(range(rank + 1), range(1 if image.type.shape[0] == 1 else 0, split + 1) if split else [])
    matrices = _part(taps, [*tap_groups, [rank], [rank + 1]], [*(b.taps for b in blocks), None, None])
    rows = _part(image, [*row_groups, [rank + 1]], [None, *(b.pixels for b in blocks), None])
    t, m = _TAPS[: len(tap_groups)], _ROWS[: len(row_groups)]
    sums = product_and_sum(rows, matrices, f"{m}c", f"{t}cf", f"{t}{m}f")
    shape = [*(len(b.taps) for b in blocks), image.type.shape[0], *(len(b.pixels) for b in blocks), taps.type.shape[-1]]
    groups = [*tap_groups, *([rank + d for d in group] for group in row_groups), [2 * rank + 1]]
    return expand(sums, groups, shape)


def _together(dims: range, starts: Sequence[int]) -> list[list[int]]:
    """Return dims in groups; each start after the first begins a new one."""
    begins = [0, *starts[1:]]
    return [list(range(begin, end)) for begin, end in zip(begins, [*begins[1:], len(dims)], strict=True)]


def _part(source: Any, groups: Sequence[Sequence[int]], runs: Sequence[range | None]) -> Any:
    """Return a part of a tensor with its dims merged by groups; a group's first dim larger than 1 is cut to its run."""
    shape = source.type.shape
    offsets, sizes = [], []
    for group in groups:
        whole = prod(shape[d] for d in group)
        cut = next((d for d in group if shape[d] > 1), group[0])
        run = runs[cut] or range(shape[cut])
        offsets.append(run.start * whole // shape[cut])
        sizes.append(len(run) * whole // shape[cut])
    return slice_of(collapse(source, groups), offsets, sizes)


def _match_index(handle: Any, op: Any) -> None:
    """Emit a check of how an index is computed: the ops, the constants and the loops."""
    transform.MatchOperationNameOp(handle, [op.name])
    if op.name == "arith.constant":
        match_dag(op, [], handle)
    if op.name == "linalg.index":
        only_op(handle, op.name, {"dim": op.attributes["dim"]})
    for number, operand in enumerate(op.operands):
        _match_index(producer_of(handle, number), producer(operand))
