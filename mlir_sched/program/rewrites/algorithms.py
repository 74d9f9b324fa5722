"""The algorithms of a rewritten network: convolutions of one shape that another algorithm computes by fewer products.

A network whose layout is settled computes every convolution directly. Winograd's algorithms may be faster for some of
its shapes; which ones depends on the scripts that are found for both ways.
"""

from __future__ import annotations

from collections.abc import Sequence

from iree.compiler import ir

from mlir_sched.program.rewrites.channels_last import ChannelsLast
from mlir_sched.program.rewrites.composition import Composition, rewritten
from mlir_sched.program.rewrites.decomposed_attention import DecomposedAttention
from mlir_sched.program.rewrites.fused_padding import FusedPadding
from mlir_sched.program.rewrites.packed_weights import PackedWeights
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.winograd import Winograd


def other_algorithms(program: ir.Module) -> tuple[str, ...]:
    """Return the shapes of the convolutions that Winograd's algorithms can compute, each once, in the program's order.

    There are none in a program that cannot have channels last.

    Args:
        program: As in :meth:`ProgramRewrite.applies`; channels first.
    """
    layout = ChannelsLast(cancel=True)
    if not layout.applies(program):
        return ()
    network = rewritten(layout, program)
    return tuple(dict.fromkeys(site.shape for site in Winograd().sites(network)))


def name_of(shape: str) -> str:
    """Return the name of the other algorithm for convolutions of a shape."""
    return Winograd([shape]).name


def with_algorithms(name: str, shapes: Sequence[str]) -> ProgramRewrite:
    """Return a rewrite that computes convolutions of some shapes by another algorithm, and is as before otherwise.

    Args:
        name: Name of the rewrite: ``channels_last``, or a rewrite that refines it.
        shapes: At least one of :func:`other_algorithms`.
    """
    _, *others = name.split("+")
    refining = (DecomposedAttention(), PackedWeights(), FusedPadding())
    further = [part for part in refining if part.name in others]
    return Composition(ChannelsLast(cancel=True), Winograd(shapes), *further)
