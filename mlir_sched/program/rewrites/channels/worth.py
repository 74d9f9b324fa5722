"""Which linear ops that read permuted channels are worth other weights: those without which less is moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import prod
from typing import Any

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.channels.moves import REORDERING
from mlir_sched.program.rewrites.channels.permuted_read import PermutedRead
from mlir_sched.program.rewrites.linalg_ops import CONCAT, GENERIC
from mlir_sched.program.rewrites.placed.body import EXTRACT
from mlir_sched.program.rewrites.walked_program import CPU, GPU

BYTES_PER_COPY: Mapping[str, int] = {CPU: 8 << 10, GPU: 4 << 20}
"""The least that has to be no longer transposed for every further copy: with less, the copies take longer; by kind of
device, rounded to powers of two.

On CPUs judged on one core with AVX-512, with images of 7 to 28 pixels a side: a copy takes 1.3 us, however little is
copied, and a transposition of channels that lie side by side moves 7.5 GB/s; on several cores it was not measured. On
GPUs nothing was measured: a copy is taken for a launch of 3 us, and transpositions for as fast as the memory of large
GPUs, so that a program is left as it is where in doubt.
"""


def worth(sites: Sequence[PermutedRead], bytes_per_copy: int) -> list[PermutedRead]:
    """Return the sites that are freed of moves, where these cost more than what is read in their place.

    Args:
        sites: The sites.
        bytes_per_copy: See :data:`BYTES_PER_COPY`.
    """
    freed = _freed(sites)
    paying = {site.op for group in _groups(freed) if _pays(group, bytes_per_copy) for site in group}
    return [site for site in freed if site.op in paying]


def _freed(sites: Sequence[PermutedRead]) -> list[PermutedRead]:
    """Return the sites that are freed of moves while the others are left out."""
    gone = _gone(sites)
    kept = [site for site in sites if _saves(site, gone)]
    return kept if len(kept) == len(sites) else _freed(kept)


def _saves(site: PermutedRead, gone: set[Any]) -> bool:
    """Say whether nothing transposes, or computes, channels of a site in the model's order once some ops are gone."""
    copies = [op for op in site.moves if op.name in (CONCAT, *REORDERING)]
    needed = [*(op for op in copies if op.name in REORDERING), *(passing.op for passing in site.passed)]
    return all(op in gone for op in needed) and any(op in gone for op in copies)


def _groups(sites: Sequence[PermutedRead]) -> list[list[PermutedRead]]:
    """Return sites in groups that have no moves in common."""
    groups = list[tuple[list[PermutedRead], set[Any]]]()
    for site in sites:
        moves = {*site.moves}
        near = [group for group in groups if not group[1].isdisjoint(moves)]
        far = [group for group in groups if group[1].isdisjoint(moves)]
        groups = [*far, ([*chain(*(own for own, _ in near)), site], moves.union(*(theirs for _, theirs in near)))]
    return [own for own, _ in groups]


def _pays(sites: Sequence[PermutedRead], bytes_per_copy: int) -> bool:
    """Say whether what is no longer transposed, or gathered, is worth the copies that there are more of."""
    gone = _gone(sites)
    moved = sum(_bytes(op.results[0].type) for op in gone if op.name in REORDERING)
    joined = sum(len(op.operands) for op in gone if op.name == CONCAT)
    reads = {(site.origin.sources, tuple(site.runs)) for site in sites}
    copies = sum(len(runs) for _, runs in reads if len(runs) > 1)
    return moved > bytes_per_copy * (copies - joined)


def _bytes(kind: Any) -> int:
    """Return the size of a tensor of a type."""
    return int(prod(kind.shape)) * int(kind.element_type.width) // 8


def _gone(sites: Sequence[PermutedRead]) -> set[Any]:
    """Return the ops that nothing reads once sites are replaced, and the linear ops of the sites."""
    roots = {site.op for site in sites}
    read = {producer(value) for site in sites for value in site.inputs}
    between = {op for site in sites for op in (*site.moves, *(passing.op for passing in site.passed))}
    gone = (between | roots) - (read - roots)
    while left := {op for op in gone - roots if any(_reader(use) not in gone for use in op.results[0].uses)}:
        gone -= left
    return gone


def _reader(use: Any) -> Any:
    """Return the op that uses a value, itself or in its body."""
    op = use.owner.operation
    return op.parent.operation if op.name == EXTRACT and op.parent.operation.name == GENERIC else op
