"""The linear ops whose channels are permuted, and which of them are worth other weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.channels.moves import ONE_TO_ONE, Span, read_span
from mlir_sched.program.rewrites.channels.origin import is_known, origin
from mlir_sched.program.rewrites.channels.passing import passing
from mlir_sched.program.rewrites.channels.permuted_read import PermutedRead, Step
from mlir_sched.program.rewrites.dag_site import Path
from mlir_sched.program.rewrites.linalg_ops import CONCAT, TRANSPOSE, depends_on, maps_of
from mlir_sched.program.rewrites.linear.facts import Facts
from mlir_sched.program.rewrites.linear.linear_op import INIT, Linear, linear_ops
from mlir_sched.program.rewrites.walked_program import WalkedProgram

MIN_RUN = 4
"""Fewest channels of a run on average. A run is a copy of its own, which takes as long as about four channels in a
transpose, however few channels it has; judged on images of 7 to 56 pixels a side, one core with AVX-512."""


def permuted_reads(program: WalkedProgram) -> list[PermutedRead]:
    """Return the linear ops that read permuted channels where nothing else needs these in the model's order."""
    facts = program.known(Facts.of)
    return _settled([site for begin in program.known(linear_ops) if (site := _site(begin, facts))])


def _settled(sites: Sequence[PermutedRead]) -> list[PermutedRead]:
    """Return the sites without which fewer channels are copied, given that the others are left out."""
    gone = _gone(sites)
    kept = [site for site in sites if _saves(site, gone)]
    return kept if len(kept) == len(sites) else _settled(kept)


def _saves(site: PermutedRead, gone: set[Any]) -> bool:
    """Say whether nothing transposes, or computes, channels of a site in the model's order once some ops are gone."""
    copies = [op for op in site.moves if op.name in (CONCAT, TRANSPOSE)]
    needed = [*(op for op in copies if op.name == TRANSPOSE), *(passing.op for _, passing in site.passed)]
    return all(op in gone for op in needed) and any(op in gone for op in copies)


def _gone(sites: Sequence[PermutedRead]) -> set[Any]:
    """Return the ops that nothing reads once sites are replaced, and the linear ops of the sites."""
    roots = {site.op for site in sites}
    read = {producer(value) for site in sites for value in site.inputs}
    between = {op for site in sites for op in (*site.moves, *(passing.op for _, passing in site.passed))}
    gone = (between | roots) - (read - roots)
    while left := {op for op in gone - roots if any(use.owner.operation not in gone for use in op.results[0].uses)}:
        gone -= left
    return gone


def _site(begin: Linear, facts: Facts) -> PermutedRead | None:
    """Return a linear op as one that reads permuted channels; None where it reads others, or has no weights alone."""
    if not facts.is_read_alone(begin.op.operands[begin.weights]):
        return None
    found = (_read(begin, span, facts) for span in _spans(begin))
    return next((site for site in found if site is not None and _is_permuted(site)), None)


def _is_permuted(site: PermutedRead) -> bool:
    """Say whether channels are moved that can be read in runs."""
    moves = not site.is_sorted or any(op.name == TRANSPOSE for op in site.moves)
    return moves and sum(run.size for run in site.runs) >= MIN_RUN * len(site.runs)


def _spans(begin: Linear) -> Iterator[Span]:
    """Yield the dimensions of channels in what a linear op reads: with those of groups, then without."""
    image, weights = (begin.loops[place] for place in (begin.image, begin.weights))
    summed = [dim for dim, loop in enumerate(image) if loop in begin.summed and weights.count(loop) == 1]
    if len(summed) != 1 or not _is_read_once(begin, summed[0]):
        return
    (dim,) = summed
    group = image[dim - 1] if dim else None
    if group is not None and weights.count(group) == 1 and group in begin.loops[INIT]:
        yield Span(dim - 1, 2)
    yield Span(dim, 1)


def _is_read_once(begin: Linear, dim: int) -> bool:
    """Say whether no other dimension of what a linear op reads depends on the loop along one of them."""
    exprs = maps_of(begin.op)[begin.image].results
    return sum(depends_on(expr, exprs[dim]) for expr in exprs) == 1


def _read(begin: Linear, span: Span, facts: Facts) -> PermutedRead | None:
    """Return a linear op with what is in front of it; None where it is not known where its channels come from.

    What computes something in front of all moves stays there.
    """
    steps, reached = list[Step](), [_Reached(begin.op.operands[begin.image], span, (begin.image,))]
    if not is_known(*reached[0][:2]):
        return None
    while step := _step(reached[-1], facts):
        steps.append(step)
        reached.append(_behind(step))
    if not origin(*reached[-1]).moves:
        while steps and steps[-1].passing:
            steps.pop()
            reached.pop()
    return PermutedRead(begin.op, begin, span, tuple(steps), reached[-1].way, origin(*reached[-1]))


class _Reached(NamedTuple):
    """A value in front of a linear op.

    Attributes:
        value: The value.
        span: The dimensions that its channels lie along.
        way: The way to the value.
    """

    value: Any
    span: Span
    way: Path


def _step(reached: _Reached, facts: Facts) -> Step | None:
    """Return the op that makes a value, if that keeps all channels, or computes each of them alike."""
    op, span = producer(reached.value), reached.span
    inner = read_span(op, span)
    if inner is not None and op.name in ONE_TO_ONE and is_known(op.operands[0], inner):
        return Step(op, reached.way, span, None)
    made = passing(op, span.first, facts) if span.rank == 1 else None
    return None if made is None else Step(op, reached.way, span, made)


def _behind(step: Step) -> _Reached:
    """Return the value whose channels an op moves, or computes something of."""
    place = step.passing.place if step.passing else 0
    span = step.span if step.passing else read_span(step.op, step.span)
    assert span is not None
    return _Reached(step.op.operands[place], span, (*step.way, place))
