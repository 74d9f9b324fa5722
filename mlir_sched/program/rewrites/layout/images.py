"""Images that are padded or joined channels first, padded or joined with channels last.

Transposes move through padding, but not once IREE has folded the batch of one of a padded image: a transpose in front
of this padding, such as that of tokens which become an image (SegFormer), would stay, and so would that of a depthwise
or a one-dimensional convolution.

Transposes do not move through ``tensor.concat``, as of ``torch.cat``: images and result would keep theirs, and a
convolution whose result is joined would store it in both layouts.
"""

from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import tensor

from mlir_sched.compiler.operations import producer, walk
from mlir_sched.program.rewrites.convolution_ops import TO_FIRST, TO_LAST, is_static_f32, layouts, leads_to_convolutions
from mlir_sched.program.rewrites.linalg_ops import CONCAT, transposed
from mlir_sched.program.rewrites.padding.padding_rewrite import PaddingRewrite, PadSite
from mlir_sched.program.rewrites.padding.tensor_pad import padded, sides_of
from mlir_sched.program.rewrites.site_rewrite import OpRewrite, OpSite

READERS = ("linalg.depthwise_conv_2d_nchw_chw", "linalg.conv_1d_ncw_fcw", "linalg.depthwise_conv_1d_ncw_cw")
"""The convolutions, as they are before the layout changes."""


@dataclass(frozen=True)
class ChannelsLastPadding(PaddingRewrite):
    """Pads images with channels last, and transposes the result back."""

    name = "channels_last_padding"

    def fits(self, site: PadSite) -> bool:
        """Say whether only such convolutions read an image."""
        return all(use.owner.operation.name in READERS for use in site.result.uses)

    def compute(self, site: PadSite, *inputs: Any) -> Any:
        """Return the padded image, transposed back."""
        (image,) = inputs
        to_last, to_first = layouts(image.type.rank - 2)
        low, high = ([side[dim] for dim in to_last] for side in sides_of(site.pad))
        return transposed(padded(transposed(image, to_last), low, high), to_first)

    def marked(self, result: Any) -> Any:
        """Return the padding: the transpose behind it may be cancelled."""
        return producer(producer(result).operands[0])


@dataclass(frozen=True)
class ChannelsLastConcat(OpRewrite[OpSite]):
    """Joins images with channels last, and transposes the result back."""

    name = "channels_last_concat"

    def sites(self, program: ir.Module) -> list[OpSite]:
        """Return the ops that join channels, where convolutions read the results of all ops of the kind."""
        joins = [OpSite(op) for op in walk(program.operation) if op.name == CONCAT]
        others = {site.kind for site in joins if not (_joins_channels(site.op) and leads_to_convolutions(site.result))}
        return [site for site in joins if site.kind not in others]

    def compute(self, site: OpSite, *inputs: Any) -> Any:
        """Return the joined images, transposed back."""
        kind = site.result.type
        joined = ir.RankedTensorType.get([kind.shape[dim] for dim in TO_LAST], kind.element_type)
        return transposed(tensor.concat(joined, 3, [transposed(image, TO_LAST) for image in inputs]), TO_FIRST)

    def marked(self, result: Any) -> Any:
        """Return the op that joins: the transpose behind it may be cancelled."""
        return producer(producer(result).operands[0])


def _joins_channels(op: Any) -> bool:
    """Say whether an op joins the channels of images."""
    images = is_static_f32(op.result) and op.result.type.rank == 4
    return images and ir.IntegerAttr(op.attributes["dim"]).value == 1
