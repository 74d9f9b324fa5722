"""Constants behind parts and joins of what linear ops compute, or in front of joins, moved to where weights take them.

A scale behind one part is a factor of the whole, 1 for all channels of the others. What scales and shifts a join does
so to each of the joined tensors, with numbers of its own; what scales and shifts these in front of a linear op does so
to the join. They are chains of linear ops then, which :mod:`.folded_constants` folds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from iree.compiler.dialects import transform

from mlir_sched.program.rewrites.dag_site import DagRewrite, found_again
from mlir_sched.program.rewrites.folding.finding import begins
from mlir_sched.program.rewrites.folding.join import Join, joins
from mlir_sched.program.rewrites.folding.joined_front import JoinedFront, joined_fronts
from mlir_sched.program.rewrites.folding.part import Part, factor_of
from mlir_sched.program.rewrites.linalg_ops import CONCAT, SLICE
from mlir_sched.program.rewrites.linear.behind import Behind, Forward
from mlir_sched.program.rewrites.linear.facts import Facts
from mlir_sched.program.rewrites.linear.linear_op import Linear
from mlir_sched.program.rewrites.linear.moves import is_part
from mlir_sched.program.rewrites.linear.step import Step
from mlir_sched.program.rewrites.linear.walk import Loops
from mlir_sched.program.rewrites.walked_program import WalkedProgram

Site = Part | Join | JoinedFront


@dataclass(frozen=True)
class MovedConstants(DagRewrite[Site]):
    """Scales all that a linear op computes, in place of one part; scales what is joined, in place of the join."""

    name = "moved_constants"

    def sites(self, program: WalkedProgram) -> list[Site]:
        """Return all parts of what linear ops compute, where one of them is scaled, and the joins that are scaled."""
        if not any(op.name in (CONCAT, SLICE) for op in program.ops):
            return []
        facts, (linear_ops, owned) = program.known(Facts.of), program.known(begins)
        taken = {*owned}
        walks = _walks(linear_ops, facts, taken)
        groups = list[Sequence[Site]](_parts(value, each, taken) for value, each in walks.items())
        groups += [(join,) for join in joins(walks, program.ops, facts, taken)]
        taken |= {step.op for group in groups for join in group if isinstance(join, Join) for step in join.steps}
        groups += [(join,) for join in joined_fronts(linear_ops, facts, taken)]
        while True:
            every = sorted((site for group in groups for site in group), key=lambda site: -len(site.ops))
            found = list(found_again(every, program))
            whole = [group for group in groups if {*group} <= {*found}]
            if len(whole) == len(groups):
                return found
            groups = whole

    def compute(self, site: Site, *inputs: Any) -> Any:
        """Return what follows a part of the scaled whole, without the scale, or the join of scaled tensors."""
        given = dict(zip(site.leaves, inputs, strict=True))
        scaled = site.scaled(given)
        for value in scaled.values():
            self.prove(value.owner)
        return site.replacement({**given, **scaled})

    def mark(self, site: Site, result: Any) -> None:
        """Mark nothing more: what scales is marked."""

    def emit(self, module: Any, sites: Sequence[Sequence[Site]], program: WalkedProgram) -> Any:
        """Emit the replacements, and scale each whole once; see :meth:`SiteRewrite.emit`."""
        module = super().emit(module, sites, program)
        transform.ApplyCommonSubexpressionEliminationOp(module)
        return module


class _OfPart(Forward):
    """The walk from a part on, to what scales all of its elements alike."""

    @property
    def is_multiplied(self) -> bool:
        """As if another tensor multiplied: nothing else passes."""
        return True

    def goes_through(self, step: Step) -> Loops | None:
        """Go through an op, unless it reads its scale."""
        return None if step.numbers else super().goes_through(step)


def _walks(linear_ops: Sequence[tuple[Linear, Behind]], facts: Facts, taken: set[Any]) -> dict[Any, Forward]:
    """Return how linear ops whose weights can be scaled are followed, by the last value."""
    found = dict[Any, Forward]()
    for begin, after in linear_ops:
        each = Forward(begin, facts, taken - {step.op for step in after.steps})
        each.start()
        each.finish()
        if not each.is_multiplied and facts.is_read_alone(begin.op.operands[begin.weights]):
            found[each.value] = each
    return found


def _parts(value: Any, whole: Forward, taken: set[Any]) -> tuple[Part, ...]:
    """Return all parts of what a linear op computes, and take what scales one of them; none where nothing does."""
    ops = [use.owner.operation for use in value.uses]
    if not all(is_part(op) and op.parent == whole.begin.op.parent for op in ops):
        return ()
    parts = list[Part]()
    for op in ops:
        parts.append(_part(op, whole, taken.union(step.op for part in parts for step in part.steps)))
    scales = {part.box: scale for part in parts if len(part.steps) > 1 and (scale := part.scale) is not None}
    if not scales or any(one.box.meets(other.box) for one in parts for other in parts if one is not other):
        return ()
    if whole.loops_of([list(factor_of(value.type.shape, scales).shape)]) is None:
        return ()
    taken |= {step.op for part in parts for step in part.steps}
    return tuple(replace(part, scales=tuple(scales.items())) for part in parts)


def _part(op: Any, whole: Forward, taken: Collection[Any]) -> Part:
    """Return a part with what scales all of its elements, or alone where nothing does."""
    each = _OfPart(whole.begin, whole.facts, taken, [Step(op, 0)], [frozenset()])
    part = Part(tuple(each.steps[: max(each.finish(), 1)]))
    return part if part.scale is not None else Part(part.steps[:1])
