"""Plans and variants by name, for tests that need no program behind them."""

from __future__ import annotations

from dataclasses import dataclass

from iree.compiler import ir

from mlir_sched.program.plan import Flags, Plan, Site
from mlir_sched.program.rewrites.convolution.winograd import Convolutions
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram
from mlir_sched.program.variant import Variant


@dataclass(frozen=True)
class Named(ProgramRewrite):
    """A rewrite of any program, without ops."""

    named: str

    @property
    def name(self) -> str:
        return self.named

    def finds(self, program: WalkedProgram) -> bool:
        return True

    def append(self, library: ir.Module, program: WalkedProgram, found: bool) -> str:
        return "nothing"


@dataclass(frozen=True)
class Slow(Named):
    """A rewrite that is slow without scripts."""

    needs_scripts = True


def flagged(name: str, *flags: str) -> Variant:
    """Return the variant with some of IREE's flags."""
    return Variant(Plan(own_flags=Flags(name, flags)))


def convolution_sites(*shapes: str) -> tuple[Site, ...]:
    """Return the sites of convolutions of some shapes."""
    return tuple(Site(Convolutions(), shape) for shape in shapes)
