"""The chains of a program (:mod:`.chain`), and which of them a matcher can find again."""

from __future__ import annotations

from math import prod
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import walk
from mlir_sched.program.rewrites.dag_site import found_again
from mlir_sched.program.rewrites.folding.ahead import Ahead, ahead
from mlir_sched.program.rewrites.folding.behind import Behind, behind
from mlir_sched.program.rewrites.folding.chain import Chain
from mlir_sched.program.rewrites.folding.facts import Facts
from mlir_sched.program.rewrites.folding.linear import Linear, linear
from mlir_sched.program.rewrites.folding.step import Parts, parts


def chains(program: ir.Module) -> list[Chain]:
    """Return the chains of a program that a matcher finds again, the longest first.

    Once the longer ones are replaced, what is left of them matches nothing. What stands between two linear ops belongs
    to the first one, where that can take it.
    """
    ops = list(walk(program.operation))
    facts = Facts.of(program, ops)
    begins, taken = list[tuple[Linear, Behind]](), set[Any]()
    for begin in (each for op in ops if (each := linear(op, facts.globals))):
        if after := behind(begin, facts, taken):
            begins.append((begin, after))
            taken |= {step.op for step in after.steps} if after.is_gain else set()
    found = [_chain(begin, after, ahead(begin, facts, taken), facts) for begin, after in begins]
    known = sorted(filter(None, found), key=lambda chain: -len(chain.gone))
    return list(found_again(known, ops))


def _chain(begin: Linear, after: Behind, before: Ahead, facts: Facts) -> Chain | None:
    """Return the chain around a linear op; None where there is not less to compute without it."""
    before = before if _is_gain(begin, after, before) else Ahead()
    if not after.is_gain and not before.parts.shifts:
        after = Behind((), after.loops if after.has_bias else frozenset(), after.has_bias)
    if not after.is_gain and not before.steps:
        return None
    of_result = parts(after.steps, shifted=after.has_bias or before.parts.shifts) or Parts()
    needed = after.loops | before.loops | (begin.summed if before.parts.shifts else set())
    scales = before.parts.scales or of_result.scales
    if scales and not facts.is_read_alone(begin.op.operands[begin.weights]):
        return None
    copies = begin.copies(needed) if scales or before.parts.shifts else ()
    return Chain(begin, after.steps, before.steps, copies, after.has_bias, before.parts, of_result)


def _is_gain(begin: Linear, after: Behind, before: Ahead) -> bool:
    """Say whether there is less to compute once what stands in front of a linear op is folded into its weights.

    What is shifted in front becomes an addition behind, which costs nothing where there is one already.
    """
    has_addition = after.has_bias or after.parts.shifts
    added = prod(begin.op.results[0].type.shape) if before.parts.shifts and not has_addition else 0
    return before.operations > added
