"""The chains of a program (:mod:`.chain`), its runs (:mod:`.affine_run`), and which ones a matcher can find again."""

from __future__ import annotations

from typing import Any

from mlir_sched.program.rewrites.dag_site import found_again
from mlir_sched.program.rewrites.folding.affine_run import AffineRun, runs
from mlir_sched.program.rewrites.folding.chain import Chain
from mlir_sched.program.rewrites.folding.fronts import folded_fronts
from mlir_sched.program.rewrites.linear.ahead import Ahead, ahead
from mlir_sched.program.rewrites.linear.behind import Behind, behind
from mlir_sched.program.rewrites.linear.facts import Facts
from mlir_sched.program.rewrites.linear.linear_op import Linear, linear_ops
from mlir_sched.program.rewrites.linear.step import Parts, parts
from mlir_sched.program.rewrites.walked_program import WalkedProgram


def sites(program: WalkedProgram) -> list[Chain | AffineRun]:
    """Return the chains of a program that a matcher finds again, and then the runs of what no chain takes."""
    found, facts = _chains(program), program.known(Facts.of)
    taken = {op for chain in found for op in chain.gone}
    longest = sorted(runs(program.ops, facts, taken), key=lambda run: -len(run.steps))
    return [*found, *found_again(longest, program, taken)]


def _chains(program: WalkedProgram) -> list[Chain]:
    """Return the chains of a program that a matcher finds again, the longest first.

    Once the longer ones are replaced, what is left of them matches nothing. What stands between two linear ops belongs
    to the first one, where that can take it. What several linear ops read in front belongs to all of them, or to none.
    """
    facts, (linear, taken) = program.known(Facts.of), program.known(begins)
    fronts = {begin.op: ahead(begin, facts, taken) for begin, _ in linear}
    while True:
        agreed = folded_fronts(fronts, {begin.op: after for begin, after in linear})
        known = filter(None, [_chain(begin, after, agreed[begin.op], facts) for begin, after in linear])
        found = list(found_again(sorted(known, key=lambda chain: (-len(chain.gone), -chain.most_readers)), program))
        alone = {op for op, front in agreed.items() if front.is_shared} - {chain.linear.op for chain in found}
        if not alone:
            return found
        fronts |= dict.fromkeys(alone, Ahead())


def begins(program: WalkedProgram) -> tuple[list[tuple[Linear, Behind]], set[Any]]:
    """Return the linear ops of a program with what follows each, and what belongs to them of that."""
    facts, found, taken = program.known(Facts.of), list[tuple[Linear, Behind]](), set[Any]()
    for begin in program.known(linear_ops):
        if after := behind(begin, facts, taken):
            found.append((begin, after))
            taken |= {step.op for step in after.steps} if after.is_gain else set()
    return found, taken


def _chain(begin: Linear, after: Behind, before: Ahead, facts: Facts) -> Chain | None:
    """Return the chain around a linear op; None where there is not less to compute without it."""
    if not after.is_gain and not before.parts.shifts:
        after = Behind((), after.loops if after.has_bias else frozenset(), after.has_bias)
    if not after.is_gain and not before.steps:
        return None
    of_result = parts(after.steps, shifted=after.has_bias or before.parts.shifts) or Parts()
    needed = after.loops.union(*before.loops, begin.summed if before.parts.shifts else ())
    scales = before.parts.scales or of_result.scales
    if scales and not facts.is_read_alone(begin.op.operands[begin.weights]):
        return None
    copies = begin.copies(needed) if scales or before.parts.shifts else ()
    return Chain(begin, after.steps, before.steps, copies, after.has_bias, of_result)
