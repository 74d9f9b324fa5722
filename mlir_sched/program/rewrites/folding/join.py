"""What scales and shifts tensors that are joined, all of which linear ops compute."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from mlir_sched.compiler.operations import only_use
from mlir_sched.program.rewrites.dag_site import Path
from mlir_sched.program.rewrites.linalg_ops import CONCAT, copied, dim_of, loops_of, maps_of, slice_of
from mlir_sched.program.rewrites.linear.behind import Forward
from mlir_sched.program.rewrites.linear.composed import Given
from mlir_sched.program.rewrites.linear.facts import Facts
from mlir_sched.program.rewrites.linear.placed import PlacedStep, Steps
from mlir_sched.program.rewrites.linear.step import Step, parts


@dataclass(frozen=True)
class Join(Steps):
    """An op that joins tensors, and those that scale or shift the result: each does so to every part."""

    @property
    def op(self) -> Any:
        """The op that joins."""
        return self.steps[0].op

    @property
    def dim(self) -> int:
        """The dimension that the parts follow each other along."""
        return dim_of(self.op)

    @property
    def parts(self) -> list[Path]:
        """The ways to the parts."""
        return [(*self.along, place) for place in range(len(self.op.operands))]

    @property
    def leaves(self) -> list[Path]:
        """The ways to the parts, and to what they are scaled and shifted by."""
        return [*self.parts, *(way for each in self.placed[1:] for way in each.numbers)]

    def scaled(self, given: Given) -> Given:
        """Return the parts, each scaled and shifted, given the values that the leaves lead to."""
        begins = accumulate((part.type.shape[self.dim] for part in self.op.operands), initial=0)
        return {way: self._scaled(given[way], at, given) for way, at in zip(self.parts, begins, strict=False)}

    def replacement(self, given: Given) -> Any:
        """Return the joined parts."""
        return copied(self.op, [given[way] for way in self.parts]).results[0]

    def _scaled(self, part: Any, at: int, given: Given) -> Any:
        """Return a part that begins at an element of the whole, scaled and shifted by numbers of its own."""
        for each in self.placed[1:]:
            part = each.step.repeated(part, {way[-1]: self._own(each, way, part, at, given) for way in each.numbers})
        return part

    def _own(self, placed: PlacedStep, way: Path, part: Any, at: int, given: Given) -> Any:
        """Return the numbers of a part."""
        loops, sizes = loops_of(maps_of(placed.step.op)[way[-1]]), list(given[way].type.shape)
        offsets = [0] * len(sizes)
        for dim, loop in enumerate(loops):
            if sizes[dim] > 1 and loop == self.dim:
                offsets[dim], sizes[dim] = at, part.type.shape[self.dim]
        return slice_of(given[way], offsets, sizes)


def joins(walks: Mapping[Any, Forward], ops: Collection[Any], facts: Facts, taken: Collection[Any]) -> Iterator[Join]:
    """Yield the joins of what linear ops compute, where what follows scales and all of their weights can take it.

    Args:
        walks: How linear ops are followed, by the last value.
        ops: All ops of the program.
        facts: What is known of the program.
        taken: Ops that belong to a linear op already.
    """
    for op in ops:
        if op.name == CONCAT and (found := _join(op, walks, facts, taken)):
            yield found


def _join(op: Any, walks: Mapping[Any, Forward], facts: Facts, taken: Collection[Any]) -> Join | None:
    """Return a join with what follows; None where that does not scale."""
    known = [walks[part] for part in op.operands if part in walks and only_use(part)]
    if len(known) < len(op.operands):
        return None
    join = Join((Step(op, 0),))
    while (step := _next(join, facts, taken)) and _is_taken(join, step, known, facts):
        join = Join((*join.steps, step))
    made = parts(join.steps[1:])
    return join if made and made.scales else None


def _next(join: Join, facts: Facts, taken: Collection[Any]) -> Step | None:
    """Return the op that alone reads the last one, if it scales or shifts."""
    step = Step.reading(join.result)
    if step is None or step.op in taken or step.op.parent != join.op.parent:
        return None
    return step if step.number_sizes(facts) is not None else None


def _is_taken(join: Join, step: Step, walks: Collection[Forward], facts: Facts) -> bool:
    """Say whether the weights of all linear ops can be multiplied by the numbers of a step."""
    found = step.number_sizes(facts) or []
    for part, walk in zip(join.op.operands, walks, strict=True):
        own = part.type.shape[join.dim]
        cut = [[own if dim == join.dim and size > 1 else size for dim, size in enumerate(sizes)] for sizes in found]
        if walk.loops_of(cut) is None:
            return False
    return True
