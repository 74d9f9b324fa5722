"""Padded tensors that stay apart from what reads them, where a compiler flag would have IREE fuse the two.

IREE 3.13 does not compile all that it fuses: products with overlapping tiles of a padded image crash the compiler, for
one. A barrier behind the padding keeps both apart, as they are without the flag.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlir_sched.compiler.flags import FUSED_PADDING
from mlir_sched.compiler.operations import producer
from mlir_sched.payload import PAD
from mlir_sched.program.rewrites.linalg_ops import barrier
from mlir_sched.program.rewrites.padding.padding_rewrite import PaddingRewrite, PadSite
from mlir_sched.program.rewrites.padding.tensor_pad import number_around, padded_alike, widths_of
from mlir_sched.program.rewrites.site_rewrite import told_apart
from mlir_sched.program.rewrites.walked_program import WalkedProgram


@dataclass(frozen=True)
class NumberedSite(PadSite):
    """A padded tensor, with any constant around it."""

    @property
    def seen(self) -> tuple[Any, ...]:
        """What finds the padding again."""
        return self.inputs[0].type, self.result.type, *widths_of(self.pad).items()

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key, equal for padded tensors that the same replacement is right for."""
        return *self.seen, number_around(self.pad)


@dataclass(frozen=True)
class SeparatePadding(PaddingRewrite):
    """Puts a barrier behind padding.

    Attributes:
        places: The kinds of padding, by their labels; None for all.
    """

    name = "separate_padding"
    symbol = "padding"
    places: tuple[str, ...] | None = None

    def fits(self, site: PadSite) -> bool:
        """Say whether a static tensor has a constant around it."""
        return bool(number_around(site.pad))

    def sites(self, program: WalkedProgram) -> list[PadSite]:
        """Return the tensors with a constant around them, except those that no matcher tells apart."""
        pads = [NumberedSite(op) for op in program.ops if op.name == PAD]
        return [site for site in told_apart(pads, lambda site: site.seen) if self.fits(site)]

    def finds(self, program: WalkedProgram) -> dict[str, list[PadSite]]:
        """Return the padded tensors of the places."""
        found = super().finds(program)
        return {label: alike for label, alike in found.items() if self.places is None or label in self.places}

    def compute(self, site: PadSite, *inputs: Any) -> Any:
        """Return the padded tensor behind a barrier."""
        (source,) = inputs
        return barrier(padded_alike(source, site.pad))

    def marked(self, result: Any) -> Any:
        """Return the padding."""
        return producer(result.owner.operands[0])


FLAG_SITES: Mapping[str, type[SeparatePadding]] = {FUSED_PADDING: SeparatePadding}
"""The rewrite that keeps some of the places which a compiler flag changes as without the flag, by the flag. It sees the
program that all other rewrites leave, and takes labels of its sites; without labels these are all such places."""
