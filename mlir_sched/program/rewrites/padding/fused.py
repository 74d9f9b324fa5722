"""Padded images that convolutions read where they lie: neither a padded copy is made nor its border filled.

IREE fuses padding into the convolution that reads the ``tensor.pad`` directly (its flag :data:`FUSED_PADDING`). Where
the image comes from a product with packed weights, whose columns are two dims, IREE 3.13 moves the reshape into one dim
from in front of the padding behind it, and no longer fuses. A barrier in front of the padding keeps the reshape there.
"""

from dataclasses import dataclass
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.flags import FUSED_PADDING
from mlir_sched.program.rewrites.linalg_ops import COLLAPSE, EXPAND, barrier, maps_of
from mlir_sched.program.rewrites.padding.padding_rewrite import PaddingRewrite, PadSite
from mlir_sched.program.rewrites.padding.tensor_pad import padded, sides_of


@dataclass(frozen=True)
class FusedPadding(PaddingRewrite):
    """Keeps the reshapes of images in front of their padding, and has IREE fuse the padding into the convolutions."""

    name = "fused_padding"
    flags = (FUSED_PADDING,)
    needs_scripts = True

    def fits(self, site: PadSite) -> bool:
        """Say whether only convolutions read an image."""
        return _all_are_windows(site.result)

    def compute(self, site: PadSite, *inputs: Any) -> Any:
        """Return the padded image, with a barrier in front of the padding."""
        (image,) = inputs
        low, high = sides_of(site.pad)
        return padded(barrier(image), low, high)


def _all_are_windows(image: Any) -> bool:
    """Say whether only convolutions read an image, as it is or reshaped."""
    return all(map(_is_window, image.uses))


def _is_window(use: Any) -> bool:
    """Say whether a use of an image is that of a convolution, which slides a window over it."""
    op = use.owner.operation
    if op.name in (COLLAPSE, EXPAND):
        return _all_are_windows(op.result)
    if op.name == "linalg.generic":
        results = maps_of(op)[use.operand_number].results
        return not all(isinstance(expr, ir.AffineDimExpr) for expr in results)
    return op.name.startswith("linalg.") and "conv_" in op.name
