"""Rewrites of gathers: how the ops are found again whose bodies read elements of tensors that are not operands."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.compiler.operations import walk
from mlir_sched.program.rewrites.layout.gather_site import EXTRACT, GatherSite, gather_site
from mlir_sched.program.rewrites.replacement import operand_of, ops_named
from mlir_sched.program.rewrites.site_rewrite import SiteRewrite, told_apart


class GatherRewrite(SiteRewrite[GatherSite]):
    """Replaces gathers that no matcher takes for another gather."""

    @abstractmethod
    def fitting(self, gathers: Sequence[GatherSite], program: ir.Module) -> list[GatherSite]:
        """Return those of a program's gathers that may be replaced."""

    def sites(self, program: ir.Module) -> list[GatherSite]:
        """Return the gathers that may be replaced and are told apart from all others."""
        gathers = [site for op in walk(program.operation) if (site := gather_site(op)) is not None]
        found = self.fitting(gathers, program)
        others = {site.matched for site in gathers if site not in found}
        return [site for site in told_apart(found, lambda site: site.matched) if site.matched not in others]

    def match(self, root: Any, site: GatherSite) -> None:
        """Emit the comparison of the op that makes an element, and of what the element is computed from."""
        site.match(root)

    def find(self, module: Any, site: GatherSite, matcher: str) -> Any:
        """Emit a handle on the ops with such bodies that have the form and the type of the site's."""
        return site.find(super().find(module, site, matcher))

    def inputs(self, op: Any, site: GatherSite) -> list[Any]:
        """Emit handles on the tensors of indices, and on the images, which only the body names."""
        read = [extract.operands[0] for extract in site.extracts]
        extracts = transform.SplitHandleOp([transform.AnyOpType.get()] * len(read), ops_named(op, EXTRACT)).results
        images = [operand_of(extracts[read.index(image)], 0) for image in site.images]
        return [*(operand_of(op, number) for number in range(len(site.indices))), *images]
