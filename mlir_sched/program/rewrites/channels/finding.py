"""The linear ops whose channels are permuted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.channels.moves import REORDERING, Span, keeps_all
from mlir_sched.program.rewrites.channels.origin import Channels, Origins
from mlir_sched.program.rewrites.channels.passing import passing
from mlir_sched.program.rewrites.channels.permuted_read import PermutedRead, Step
from mlir_sched.program.rewrites.channels.worth import BYTES_PER_COPY, worth
from mlir_sched.program.rewrites.linalg_ops import depends_on, maps_of
from mlir_sched.program.rewrites.linear.facts import Facts
from mlir_sched.program.rewrites.linear.linear_op import INIT, Linear, linear_ops
from mlir_sched.program.rewrites.walked_program import WalkedProgram


class _Around(NamedTuple):
    """What has to be known of the whole program.

    Attributes:
        facts: What is constant.
        origins: Where channels come from.
    """

    facts: Facts
    origins: Origins


def permuted_reads(program: WalkedProgram) -> list[PermutedRead]:
    """Return the linear ops that read permuted channels where nothing else needs these in the model's order."""
    around = _Around(program.known(Facts.of), Origins())
    sites = [site for begin in program.known(linear_ops) if (site := _site(begin, around))]
    return worth(sites, BYTES_PER_COPY[program.device])


def _site(begin: Linear, around: _Around) -> PermutedRead | None:
    """Return a linear op as one that reads permuted channels; None where it reads others, or has no weights alone.

    What is in front of a loop is computed once: a linear op in the loop would compute it every time.
    """
    if not around.facts.is_read_alone(begin.op.operands[begin.weights]):
        return None
    found = (_read(begin, span, around) for span in _spans(begin))
    return next((site for site in found if site is not None and _is_permuted(site) and _is_in_one_block(site)), None)


def _is_in_one_block(site: PermutedRead) -> bool:
    """Say whether a linear op and all that its channels come through are computed equally often."""
    return len({link.op.parent.operation for link in site.links}) == 1


def _is_permuted(site: PermutedRead) -> bool:
    """Say whether channels are moved that can be read in another order."""
    return not site.is_sorted or any(op.name in REORDERING for op in site.moves)


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


def _read(begin: Linear, span: Span, around: _Around) -> PermutedRead | None:
    """Return a linear op with what is in front of it; None where it is not known where its channels come from.

    What computes something in front of all moves stays there.
    """
    steps, reached = list[Step](), [Channels(begin.op.operands[begin.image], span)]
    if not reached[0].is_known:
        return None
    while step := _step(reached[-1], around.facts):
        steps.append(step)
        reached.append(_behind(step))
    if not around.origins.of(reached[-1]).moves:
        while steps and steps[-1].passing:
            steps.pop()
            reached.pop()
    return PermutedRead(begin.op, begin, span, tuple(steps), around.origins.of(reached[-1]))


def _step(reached: Channels, facts: Facts) -> Step | None:
    """Return the op that makes a value, if that keeps all channels, or computes each of them alike."""
    op, span = producer(reached.value), reached.span
    if reached.read:
        return Step(op, span, None) if keeps_all(op) else None
    made = passing(op, span.first, facts) if span.rank == 1 else None
    step = None if made is None else Step(op, span, made)
    return step if step and _behind(step).is_known else None


def _behind(step: Step) -> Channels:
    """Return the value whose channels an op moves, or computes something of."""
    if step.passing:
        span = Span(step.span.first, len(step.passing.merged) or 1)
        return Channels(step.op.operands[step.passing.place], span)
    (read,) = Channels(step.op.results[0], step.span).read
    return read
