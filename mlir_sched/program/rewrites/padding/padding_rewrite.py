"""Rewrites of images that are padded with zeros: how their ``tensor.pad`` ops are found again."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.payload import PAD
from mlir_sched.program.rewrites.padding.tensor_pad import only_pad, pads_with_zeros, widths_of
from mlir_sched.program.rewrites.replacement import attributes_of, match_type, operand_of, ops_named
from mlir_sched.program.rewrites.site_rewrite import SiteRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram


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
        return self.inputs[0].type, self.result.type, attributes_of(self.pad)


class PaddingRewrite(SiteRewrite[PadSite]):
    """Replaces padded images, where all padded images of the kind may be replaced."""

    @abstractmethod
    def fits(self, site: PadSite) -> bool:
        """Say whether an image that is padded with zeros may be replaced."""

    def sites(self, program: WalkedProgram) -> list[PadSite]:
        """Return the images that are padded with zeros and fit, if all images of the kind do."""
        pads = [PadSite(op) for op in program.ops if op.name == PAD]
        others = {site.kind for site in pads if not (pads_with_zeros(site.pad) and self.fits(site))}
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
