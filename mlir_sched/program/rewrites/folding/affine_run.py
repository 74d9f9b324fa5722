"""Numbers that scale and shift the channels of a tensor which no linear op with constant weights makes or reads.

What several ops do to an element, one after the other, is one product and one addition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_sched.compiler.operations import only_use, producer
from mlir_sched.program.rewrites.convolution_ops import is_static_f32
from mlir_sched.program.rewrites.linear.composed import Given, Numbers
from mlir_sched.program.rewrites.linear.facts import Facts
from mlir_sched.program.rewrites.linear.placed import Steps
from mlir_sched.program.rewrites.linear.step import Step, parts


@dataclass(frozen=True)
class AffineRun(Steps):
    """Ops that scale or shift each element, one after the other."""

    def replacement(self, given: Given) -> Any:
        """Return the result from one product and one addition, given the values that the leaves lead to."""
        value = given[self.leaves[0]]
        numbers = Numbers.of_steps(self.placed, value.type.rank, given)
        return numbers.applied(value, scale=numbers.scale, shift=numbers.shift)


def runs(ops: Sequence[Any], facts: Facts, taken: Collection[Any]) -> Iterator[AffineRun]:
    """Yield the longest runs in which there are more operations than a product and an addition, the last run first.

    Args:
        ops: All ops of the program.
        facts: What is known of the program.
        taken: Ops that no run contains.
    """
    seen = {*taken}
    for op in reversed(ops):
        steps = [*steps_back(op, facts, seen)][::-1]
        seen |= {step.op for step in steps}
        made = parts(steps) if len(steps) > 1 else None
        if made is not None and sum(_operations(step.op) for step in steps) > sum(made):
            yield AffineRun(tuple(steps))


def steps_back(op: Any, facts: Facts, seen: Collection[Any]) -> Iterator[Step]:
    """Yield the steps of a run from its last op back, whose numbers lie along the same channels, or are one for all."""
    sizes, block = [], op.parent
    while op is not None and op not in seen and op.parent == block and (step := _step(op, facts)):
        sizes += [each for each in step.number_sizes(facts) or () if max(each, default=1) > 1]
        if any(each != sizes[0] for each in sizes):
            return
        yield step
        value = op.operands[step.place]
        op = producer(value) if only_use(value) else None


def _step(op: Any, facts: Facts) -> Step | None:
    """Return an op as a step; None where it does anything else than to scale or shift elements of f32."""
    if op.name != "linalg.generic" or not all(map(is_static_f32, op.operands)):
        return None
    varying = [place for place, value in enumerate(op.operands) if not facts.is_number(value)]
    if len(varying) != 1:
        return None
    step = Step(op, varying[0])
    return step if step.is_affine and step.number_sizes(facts) is not None else None


def _operations(op: Any) -> int:
    """Return how many operations an element-wise op makes for each element."""
    return sum(1 for one in op.regions[0].blocks[0] if one.operation.name not in ("arith.constant", "linalg.yield"))
