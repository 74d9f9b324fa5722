"""Images that are padded channels first in front of some convolutions, padded with channels last.

Transposes move through padding, but not once IREE has folded the batch of one of a padded image: a transpose in front
of this padding, such as that of tokens which become an image (SegFormer), would stay, and so would that of a depthwise
or a one-dimensional convolution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.convolution_ops import layouts
from mlir_sched.program.rewrites.linalg_ops import transposed
from mlir_sched.program.rewrites.padding.padding_rewrite import PaddingRewrite, PadSite
from mlir_sched.program.rewrites.padding.tensor_pad import padded, sides_of

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
