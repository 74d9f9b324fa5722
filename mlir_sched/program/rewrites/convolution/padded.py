"""Convolutions over a zero-padded image, without the taps that meet only padding.

Results near the border sum products with zeros. Along one spatial dimension the rewrite computes each run of results
with the same taps by a convolution of its own, over the pixels and the taps that it needs. The parts write into one
result: IREE makes every one of them a dispatch on a part of one buffer, without copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor, transform

from mlir_sched.compiler.flags import FUSED_PADDING
from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.convolution.padded_axis import PaddedAxis, ResultRun
from mlir_sched.program.rewrites.convolution_ops import CHANNELS_LAST, dilations_of, is_static_f32, strides_of
from mlir_sched.program.rewrites.linalg_ops import generic, resized, slice_of, zero
from mlir_sched.program.rewrites.padding.tensor_pad import only_pad, padded, pads_with_zeros, sides_of
from mlir_sched.program.rewrites.replacement import attributes_of, match_dag, match_type, operand_of, producer_of
from mlir_sched.program.rewrites.site_rewrite import SiteRewrite, told_apart
from mlir_sched.program.rewrites.walked_program import WalkedProgram

MIN_LEFT_OUT = 0.03
"""Least share of products to leave out for a split to be tried: a smaller share does not pay for the parts' edges."""


@dataclass(frozen=True)
class PaddedSite:
    """One convolution of a program over a padded image.

    Attributes:
        convolution: The convolution; its operands are the padded image, the filter, and the init.
        pad: The ``tensor.pad`` of the image.
        fill: The ``linalg.fill`` that makes the init; None when there is no such op.
        dim: The spatial dimension whose taps are left out, counted from 0.
        axis: That dimension.
    """

    convolution: Any
    pad: Any
    fill: Any
    dim: int
    axis: PaddedAxis

    @property
    def inputs(self) -> list[Any]:
        """The image without padding, the filter, and the init: a tensor, or the number that a fill writes into it."""
        start = self.fill.operands[0] if self.fill else self.convolution.operands[2]
        return [self.pad.operands[0], self.convolution.operands[1], start]

    @property
    def result(self) -> Any:
        """The convolution's result."""
        return self.convolution.result

    @property
    def matched(self) -> tuple[Any, ...]:
        """What every matcher compares: neither the padding per side nor whether a fill makes the init."""
        types = (value.type for value in (*self.convolution.operands, self.pad.operands[0]))
        return self.convolution.name, attributes_of(self.convolution), *types

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key, equal for sites that the same replacement is right for."""
        return *self.matched, attributes_of(self.pad), self.fill is None


@dataclass(frozen=True)
class PaddedConvolution(SiteRewrite[PaddedSite]):
    """Splits convolutions over padded images into parts, each with the taps that any of its results needs."""

    name = "padded_convolution"
    flags = (FUSED_PADDING,)

    def sites(self, program: WalkedProgram) -> list[PaddedSite]:
        """Return the convolutions with enough products to leave out, except those that no matcher can tell apart."""
        found = [site for op in program.ops if (site := _site(op)) is not None]
        apart = told_apart(found, lambda site: site.matched)
        return [site for site in apart if MIN_LEFT_OUT <= site.axis.left_out() < 1]

    def match(self, root: Any, site: PaddedSite) -> None:
        """Emit the comparison of the convolution, with its fill, and of the padded image's shape."""
        transform.MatchOperationNameOp(root, [site.convolution.name])
        _, taps, start = site.inputs
        match_dag(site.convolution, [site.pad.result, taps, start], root)
        pad = producer_of(root, 0)
        transform.MatchOperationNameOp(pad, [site.pad.name])
        match_type(operand_of(pad, 0), site.pad.operands[0].type)

    def inputs(self, op: Any, site: PaddedSite) -> list[Any]:
        """Emit handles on image, filter and init; fail unless the image is padded with zeros as in the site."""
        pad = only_pad(producer_of(op, 0), site.pad)
        start = operand_of(producer_of(op, 2), 0) if site.fill else operand_of(op, 2)
        return [operand_of(pad, 0), operand_of(op, 1), start]

    def compute(self, site: PaddedSite, *inputs: Any) -> Any:
        """Return the convolution of the padded image with the taps, plus the init."""
        runs = site.axis.runs()
        if len(runs) == 1:
            return _part(site, runs[0], *inputs)
        result = tensor.empty(list(site.result.type.shape), site.result.type.element_type)
        for run in runs:
            offsets, sizes = _rows(site, run)
            part = _part(site, run, *inputs)
            result = tensor.insert_slice(part, result, [], [], [], offsets, sizes, [1] * len(sizes))
        return result


def _site(op: Any) -> PaddedSite | None:
    if op.name not in CHANNELS_LAST or not all(is_static_f32(operand) for operand in op.operands):
        return None
    pad, shape = producer(op.operands[0]), op.result.type.shape
    if pad is None or not _pads_pixels_with_zeros(pad):
        return None
    if shape[0] != 1:  # the parts of a batched result would not be contiguous
        return None
    rank = len(shape) - 2
    dim = next((d for d in range(rank) if shape[d + 1] > 1), 0)
    axis = PaddedAxis(
        pixels=pad.operands[0].type.shape[dim + 1],
        taps=op.operands[1].type.shape[dim],
        results=shape[dim + 1],
        stride=strides_of(op, rank)[dim],
        dilation=dilations_of(op, rank)[dim],
        low=sides_of(pad)[0][dim + 1],
    )
    return PaddedSite(op, pad, _fill(op.operands[2]), dim, axis)


def _pads_pixels_with_zeros(pad: Any) -> bool:
    return pads_with_zeros(pad) and not any(side[0] or side[-1] for side in sides_of(pad))


def _fill(init: Any) -> Any:
    fill = producer(init)
    if fill is None or fill.name != "linalg.fill":
        return None
    empty = producer(fill.operands[1])
    return fill if empty is not None and empty.name == "tensor.empty" else None


def _part(site: PaddedSite, run: ResultRun, image: Any, taps: Any, start: Any) -> Any:
    """Return the results of a run."""
    offsets, sizes = _rows(site, run)
    added = None if site.fill else slice_of(start, offsets, sizes)
    if not run.taps and added is not None:
        return added
    number = start if site.fill else zero(image.type.element_type)
    init = linalg.fill(number, outs=[tensor.empty(sizes, image.type.element_type)])
    if not run.taps:
        return init
    sums = resized(site.convolution, [_padded(site, run, image), _cut(taps, site.dim, run.taps), init])
    return sums if added is None else _sum(sums, added)


def _sum(left: Any, right: Any) -> Any:
    """Return the element-wise sum: IREE 3.13 cannot compile a padded convolution that adds to a loaded tensor."""
    rank = left.type.rank
    init = tensor.empty(list(left.type.shape), left.type.element_type)
    identity = ir.AffineMap.get_identity(rank)
    return generic([left, right], init, [identity] * 3, ["parallel"] * rank, lambda x, y, _: arith.addf(x, y))


def _rows(site: PaddedSite, run: ResultRun) -> tuple[list[int], list[int]]:
    """Return offsets and sizes of a run in the result."""
    sizes = list(site.result.type.shape)
    offsets = [0] * len(sizes)
    offsets[site.dim + 1], sizes[site.dim + 1] = run.results.start, len(run.results)
    return offsets, sizes


def _padded(site: PaddedSite, run: ResultRun, image: Any) -> Any:
    """Return the part of the padded image that a run reads, padded only as far as it lies outside of the image."""
    needed, dim = site.axis.pixels_of(run), site.dim + 1
    inside = range(max(0, needed.start), min(site.axis.pixels, needed.stop))
    low, high = (list(side) for side in sides_of(site.pad))
    low[dim], high[dim] = inside.start - needed.start, needed.stop - inside.stop
    part = _cut(image, dim, inside)
    return padded(part, low, high) if any(low) or any(high) else part


def _cut(source: Any, dim: int, run: range) -> Any:
    sizes = list(source.type.shape)
    offsets = [0] * len(sizes)
    offsets[dim], sizes[dim] = run.start, len(run)
    return slice_of(source, offsets, sizes)
