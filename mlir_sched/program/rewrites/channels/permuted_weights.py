"""Permutations of channels between linear ops, in the weights of the op that reads the channels.

A block that shuffles channels splits them, computes one half, joins both and interleaves them; written as a reshape, a
transpose and a reshape, that is a copy of the whole image, element by element where channels lie side by side. A linear
op may read the channels in any order that its weights have, too: it reads runs of adjacent channels of the values that
they come from, one behind the other. What is in between and computes every channel alike, such as a depthwise
convolution, has its own numbers permuted. Weights are permuted once: at compile time where they are constants of the
module, when the module is loaded where they are parameters.

Sums have the same terms in another order. For n of them, a result differs from the exact one by at most ``n epsilon``
times the sum of all magnitudes, in both programs (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section
3.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler.dialects import transform

from mlir_sched.program.rewrites.channels.finding import permuted_reads
from mlir_sched.program.rewrites.channels.guarded import guarded
from mlir_sched.program.rewrites.channels.order import ChannelRun
from mlir_sched.program.rewrites.channels.permuted_read import PermutedRead
from mlir_sched.program.rewrites.linalg_ops import concatenated, copied, expand, gathered, searched, slice_of
from mlir_sched.program.rewrites.placed.placed_rewrite import PlacedRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram


@dataclass(frozen=True)
class PermutedWeights(PlacedRewrite[PermutedRead]):
    """Reads channels in the order in which they are made, with weights in that order."""

    name = "permuted_weights"
    typed = True

    def sites(self, program: WalkedProgram) -> list[PermutedRead]:
        """Return the linear ops that read permuted channels."""
        return permuted_reads(program)

    def compute(self, site: PermutedRead, *inputs: Any) -> Any:
        """Return the result from runs of channels, with permuted weights."""
        count, first = len(site.origin.sources), site.span.first
        sources, (weights, start, *read) = inputs[:count], inputs[count:]
        value = concatenated([_part(sources[run.source], run, first) for run in site.runs], first)
        left = iter(read)
        value = _grouped(site, _passed(site, value, left))
        if site.guards:
            weights = guarded(weights, [(next(left), guard.expected) for guard in site.guards])
        if not site.is_sorted:
            weights = gathered(weights, site.weight_dims, site.weight_places)
        factors = {site.linear.weights: weights, site.linear.image: value}
        return copied(site.op, [factors[0], factors[1], start]).results[0]

    def emit(self, module: Any, sites: Sequence[Sequence[PermutedRead]], program: WalkedProgram) -> Any:
        """Emit the replacements; what several of them compute alike is computed once."""
        module = super().emit(module, sites, program)
        transform.ApplyCommonSubexpressionEliminationOp(module)
        return module


def _part(source: Any, run: ChannelRun, dim: int) -> Any:
    """Return a run of channels."""
    shape = list(source.type.shape)
    offsets = [run.first if each == dim else 0 for each in range(len(shape))]
    return slice_of(source, offsets, [*shape[:dim], run.size, *shape[dim + 1 :]])


def _passed(site: PermutedRead, value: Any, given: Iterator[Any]) -> Any:
    """Return what the ops in front of the linear op make of channels in their new order, given what else they read."""
    for passing, order in zip(site.passed, site.orders, strict=True):
        read = {way: next(given) for way in passing.read}
        own = {way: searched(read[way], dim, order) for way, dim in passing.numbers.items()}
        value = passing.copy(value, read | own)
    return value


def _grouped(site: PermutedRead, value: Any) -> Any:
    """Return channels as the linear op reads them: along one dimension, or in groups."""
    if site.span.rank == 1:
        return value
    shape, span = list(site.op.operands[site.linear.image].type.shape), site.span
    single = [[dim] for dim in range(len(shape))]
    return expand(value, [*single[: span.first], [*range(span.first, span.end)], *single[span.end :]], shape)
