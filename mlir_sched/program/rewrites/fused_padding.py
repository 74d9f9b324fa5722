"""Padded images that convolutions read where they lie: neither a padded copy is made nor its border filled.

IREE fuses padding into the convolution that reads the ``tensor.pad`` directly (its flag :data:`FUSED_PADDING`). Where
the image comes from a product with packed weights, whose columns are two dims, IREE 3.13 moves the reshape into one dim
from in front of the padding behind it, and no longer fuses. A barrier in front of the padding keeps the reshape there.

MobileNet-V2 with packed weights on two threads (Emerald Rapids): of 4.9 ms per call, 0.7 go into padded copies and 0.4
into borders.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.compiler.operations import walk
from mlir_sched.compiler.program_flags import FUSED_PADDING
from mlir_sched.payload import PAD
from mlir_sched.program.rewrites.linalg_ops import barrier, maps_of
from mlir_sched.program.rewrites.replacement import attributes_of, match_type, operand_of, ops_named
from mlir_sched.program.rewrites.reshaped_padding import COLLAPSE, EXPAND
from mlir_sched.program.rewrites.site_rewrite import SiteRewrite
from mlir_sched.program.rewrites.tensor_pad import (
    only_pad,
    padded,
    pads_with_zeros,
    sides_of,
    widths_of,
)
from mlir_sched.targets.kind import DEFAULT


@dataclass(frozen=True)
class PadSite:
    """A padded image.

    Attributes:
        pad: The ``tensor.pad``.
    """

    pad: Any

    @property
    def inputs(self) -> list[Any]:
        """The image without padding."""
        return [self.pad.operands[0]]

    @property
    def result(self) -> Any:
        """The padded image."""
        return self.pad.result

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key, equal for padded images that a script of transform ops does not tell apart."""
        return str(self.inputs[0].type), str(self.result.type), attributes_of(self.pad)


class FusedPadding(SiteRewrite[PadSite]):
    """Keeps the reshapes of images in front of their padding, and has IREE fuse the padding into the convolutions."""

    name = "fused_padding"
    flags = (FUSED_PADDING,)
    refines = DEFAULT

    def sites(self, program: ir.Module) -> list[PadSite]:
        """Return the images that are padded with zeros, where only convolutions read all images of the kind."""
        pads = [PadSite(op) for op in walk(program.operation) if op.name == PAD]
        others = {site.kind for site in pads if not (pads_with_zeros(site.pad) and _all_are_windows(site.result))}
        return [site for site in pads if site.kind not in others]

    def match(self, root: Any, site: PadSite) -> None:
        """Emit the comparison of the image's type."""
        transform.MatchOperationNameOp(root, [PAD])
        match_type(operand_of(root, 0), site.inputs[0].type)

    def find(self, module: Any, site: PadSite, matcher: str) -> Any:
        """Emit a handle on the paddings of such images that have the widths and the type of the site's."""
        each = transform.ForeachOp([transform.AnyOpType.get()], [super().find(module, site, matcher)])
        with ir.InsertionPoint(each.body):
            transform.YieldOp([ops_named(each.bodyTargets[0], PAD, widths_of(site.pad), site.result.type)])
        return each.results[0]

    def inputs(self, op: Any, site: PadSite) -> list[Any]:
        """Emit a handle on the image; fail unless it is padded as in the site."""
        return [operand_of(only_pad(op, site.pad), 0)]

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
