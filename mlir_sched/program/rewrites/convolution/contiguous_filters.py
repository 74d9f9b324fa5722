"""Convolutions whose filter's output channels are not contiguous: the filter is transposed once, up front.

A vector over output channels multiplies each pixel as a scalar, so the image may have any layout and any stride; only
the output channels of the filter have to be contiguous. Nothing of the image is copied. A constant filter is transposed
at compile time, any other filter by a small dispatch.

A depthwise convolution multiplies vectors of channels by vectors of channels, so its image is transposed, too. The
rewrite does that only where the image's rows are strided: otherwise vectors of every second pixel would be assembled
element by element.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

from iree.compiler import ir

from mlir_sched.program.rewrites.convolution_ops import dilations_of, is_static_f32, strides_of
from mlir_sched.program.rewrites.linalg_ops import added, barrier, generic, multiply_add, transposed, zeros
from mlir_sched.program.rewrites.site_rewrite import OpRewrite, OpSite
from mlir_sched.program.rewrites.walked_program import WalkedProgram

MIN_CHANNELS = 16
"""Channels (of the result, per group) below which vectors over channels do not pay."""
MIN_PIXELS = 32
"""Results per row from which vectors of adjacent pixels are as good, with channels first, stride 1 and 3x3 taps: the
rewrite gains for rows of 14 and loses for rows of 56."""


@dataclass(frozen=True)
class Layout:
    """Dimensions of a convolution's operands, one letter per dimension.

    ``n`` is the batch, ``g`` the groups, ``c`` input and ``f`` output channels, ``s`` one spatial dimension. The
    channels of a depthwise convolution are groups of one channel.
    """

    image: str
    filter: str
    result: str

    @property
    def vector(self) -> str:
        """The dim that is made innermost: output channels, or the channels of a depthwise convolution."""
        return "f" if "f" in self.filter else "g"

    @property
    def is_depthwise(self) -> bool:
        """Whether every channel has a filter of its own, so that vectors over channels load the image, too."""
        return self.vector in self.image


LAYOUTS = {
    "linalg.conv_1d_ncw_fcw": Layout("ncs", "fcs", "nfs"),
    "linalg.conv_2d_nchw_fchw": Layout("ncss", "fcss", "nfss"),
    "linalg.conv_2d_nhwc_fhwc": Layout("nssc", "fssc", "nssf"),
    "linalg.conv_2d_ngchw_gfchw": Layout("ngcss", "gfcss", "ngfss"),
    "linalg.conv_2d_ngchw_fgchw": Layout("ngcss", "fgcss", "ngfss"),
    "linalg.conv_2d_nhwgc_gfhwc": Layout("nssgc", "gfssc", "nssgf"),
    "linalg.conv_3d_ncdhw_fcdhw": Layout("ncsss", "fcsss", "nfsss"),
    "linalg.depthwise_conv_1d_ncw_cw": Layout("ngs", "gs", "ngs"),
    "linalg.depthwise_conv_2d_nchw_chw": Layout("ngss", "gss", "ngss"),
    "linalg.depthwise_conv_3d_ncdhw_cdhw": Layout("ngsss", "gsss", "ngsss"),
}
"""The named convolutions whose :attr:`Layout.vector` is not innermost in the filter."""


@dataclass(frozen=True)
class FilterSite(OpSite):
    """One convolution of a program whose filter's channels are not innermost; operands are image, filter, init."""

    @property
    def layout(self) -> Layout:
        """The dims of its operands."""
        return LAYOUTS[self.op.name]


@dataclass(frozen=True)
class ContiguousFilters(OpRewrite[FilterSite]):
    """Transposes filters, and images of depthwise convolutions, so that their channels are innermost."""

    name = "contiguous_filters"

    def sites(self, program: WalkedProgram) -> list[FilterSite]:
        """Return the convolutions of :data:`LAYOUTS` with windows for which vectors over channels pay."""
        return [FilterSite(op) for op in program.ops if op.name in LAYOUTS and _pays(op)]

    def compute(self, site: FilterSite, *inputs: Any) -> Any:
        """Return the convolution with a transposed filter, computed with its channels innermost.

        The initial value is added at the end, by the op that restores the result's layout: IREE would fold a plain
        transpose into the convolution.
        """
        image, taps, init = inputs
        layout = site.layout
        taps = barrier(transposed(taps, _order(layout.filter, layout.vector)))
        if layout.is_depthwise:
            image = barrier(transposed(image, _order(layout.image, layout.vector)))
        result = _order(layout.result, layout.vector)
        if result == list(range(init.type.rank)):
            return _convolution(site, image, taps, init)
        sums = zeros([init.type.shape[dim] for dim in result], init.type.element_type)
        return added(init, _convolution(site, image, taps, sums), result)


def _order(dims: str, last: str) -> list[int]:
    """Return the order of dims in which the dim named ``last`` comes last."""
    return sorted(range(len(dims)), key=lambda dim: dims[dim] == last)


def _pays(op: Any) -> bool:
    """Say whether vectors over channels are faster than the vectors that the convolution allows as it is."""
    kinds = [operand.type for operand in op.operands]
    if not all(map(is_static_f32, op.operands)):
        return False
    layout, filter_, result = LAYOUTS[op.name], kinds[1].shape, kinds[2].shape
    taps = prod(size for size, dim in zip(filter_, layout.filter, strict=True) if dim == "s")
    if taps == 1 or filter_[layout.filter.index(layout.vector)] < MIN_CHANNELS:
        return False
    vectors_of_pixels = layout.image.endswith("s") and strides_of(op, layout.image.count("s"))[-1] == 1
    return not vectors_of_pixels or (result[-1] < MIN_PIXELS and not layout.is_depthwise)


def _convolution(site: FilterSite, image: Any, taps: Any, init: Any) -> Any:
    """Return the convolution with a filter whose channels are innermost."""
    op, layout = site.op, site.layout
    rank = layout.image.count("s")
    strides, dilations = strides_of(op, rank), dilations_of(op, rank)
    summed = [*(letter for letter in layout.image if letter == "c"), *(f"t{d}" for d in range(rank))]
    loops = [*layout.result.replace("s", ""), *(f"o{d}" for d in range(rank)), *summed]
    dims = {loop: ir.AffineExpr.get_dim(place) for place, loop in enumerate(loops)}
    window = [dims[f"o{d}"] * strides[d] + dims[f"t{d}"] * dilations[d] for d in range(rank)]

    def along(letters: str, spatial: list[Any]) -> ir.AffineMap:
        rest = iter(spatial)
        ordered = [letters[place] for place in _order(letters, layout.vector)]
        exprs = [next(rest) if letter == "s" else dims[letter] for letter in ordered]
        return ir.AffineMap.get(len(loops), 0, exprs)

    maps = [
        along(layout.image, window),
        along(layout.filter, [dims[f"t{d}"] for d in range(rank)]),
        along(layout.result, [dims[f"o{d}"] for d in range(rank)]),
    ]
    kinds = ["reduction" if loop in summed else "parallel" for loop in loops]
    return generic([image, taps], init, maps, kinds, multiply_add)
