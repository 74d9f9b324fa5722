"""Images that are padded channels first in front of depthwise convolutions, padded with channels last.

Transposes move through padding, but not once IREE has folded the batch of one of a padded image: a transpose in front
of this padding, such as that of tokens which become an image (SegFormer), would stay, and so would that of the
convolution.
"""

from __future__ import annotations

from typing import Any

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.convolution_ops import TO_FIRST, TO_LAST
from mlir_sched.program.rewrites.linalg_ops import transposed
from mlir_sched.program.rewrites.padding_rewrite import PaddingRewrite, PadSite
from mlir_sched.program.rewrites.tensor_pad import padded, sides_of

DEPTHWISE_FIRST = "linalg.depthwise_conv_2d_nchw_chw"


class ChannelsLastPadding(PaddingRewrite):
    """Pads images with channels last, and transposes the result back."""

    name = "channels_last_padding"

    def fits(self, site: PadSite) -> bool:
        """Say whether only depthwise convolutions read an image, as they are before the layout changes."""
        return all(use.owner.operation.name == DEPTHWISE_FIRST for use in site.result.uses)

    def compute(self, site: PadSite, *inputs: Any) -> Any:
        """Return the padded image, transposed back."""
        (image,) = inputs
        low, high = ([side[dim] for dim in TO_LAST] for side in sides_of(site.pad))
        return transposed(padded(transposed(image, TO_LAST), low, high), TO_FIRST)

    def marked(self, result: Any) -> Any:
        """Return the padding: the transpose behind it may be cancelled."""
        return producer(producer(result).operands[0])
