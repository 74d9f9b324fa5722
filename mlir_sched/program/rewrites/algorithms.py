"""The algorithms of a rewritten program: what computes its convolutions, or its attentions, of one shape.

A network whose layout is settled computes every convolution directly; Winograd's algorithms may be faster for some of
its shapes. A transformer computes attention in three dispatches; one may be faster. Which ones are depends on the
scripts that are found for both ways.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iree.compiler import ir

from mlir_sched.library.parts import ATTENTION, attention_part, attentions_in, convolutions_in
from mlir_sched.program.rewrites.channels_last import ChannelsLast
from mlir_sched.program.rewrites.composition import Composition, rewritten
from mlir_sched.program.rewrites.decomposed_attention import DecomposedAttention
from mlir_sched.program.rewrites.fused_padding import FusedPadding
from mlir_sched.program.rewrites.packed_weights import PackedWeights
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.winograd import Winograd

MIN_SCORES = 1 << 18
"""Scores of an attention below which one dispatch is not tried: 1 MiB, which a core's L2 cache holds. Of BERT-base,
whose 12 heads of 128 tokens have 196,608, it saves 0.3 % on a Zen 4, less than the trial costs in search."""
WITH_ATTENTION = ("cpu",)
"""The kinds of devices (keys of ``REWRITES``) with a transform module for attention in one dispatch."""


def other_algorithms(program: ir.Module, kind: str) -> tuple[str, ...]:
    """Return the parts of a program that another algorithm can compute, each once, in the program's order.

    No convolution is among them in a program that cannot have channels last.

    Args:
        program: As in :meth:`ProgramRewrite.applies`; channels first.
        kind: The kind of device, a key of ``REWRITES``.
    """
    attentions = DecomposedAttention().sites(program) if kind in WITH_ATTENTION else []
    large = [site.shape for site in attentions if site.can_be_fused and site.scores_per_call >= MIN_SCORES]
    return tuple(dict.fromkeys([*_convolutions(program), *map(attention_part, large)]))


def name_of(part: str) -> str:
    """Return the name of the other algorithm for a part."""
    return Winograd([part]).name if convolutions_in([part]) else DecomposedAttention(attentions_in([part])).fusing


def with_algorithms(name: str, parts: Sequence[str]) -> ProgramRewrite:
    """Return a rewrite that computes some parts by another algorithm, and is as before otherwise.

    Args:
        name: Name of the rewrite: ``channels_last`` or ``decomposed_attention``, or a rewrite that refines it.
        parts: At least one of :func:`other_algorithms`.
    """
    attention = DecomposedAttention(attentions_in(parts))
    known = (ChannelsLast(cancel=True), PackedWeights(), FusedPadding())
    by_name: Mapping[str, ProgramRewrite] = {**{rewrite.name: rewrite for rewrite in known}, ATTENTION: attention}
    first, *others = (by_name[each] for each in name.split("+"))
    convolutions = convolutions_in(parts)
    further = [*([Winograd(convolutions)] if convolutions else []), *others]
    return Composition(first, *further) if further else first


def _convolutions(program: ir.Module) -> list[str]:
    """Return the shapes of the convolutions that Winograd's algorithms can compute, channels last."""
    layout = ChannelsLast(cancel=True)
    if not layout.applies(program):
        return []
    network = rewritten(layout, program)  # its ops live as long as it does
    return [site.shape for site in Winograd().sites(network)]
