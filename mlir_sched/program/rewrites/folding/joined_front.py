"""What scales and shifts tensors before they are joined, in front of a linear op."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import linalg, tensor

from mlir_sched.compiler.operations import only_use, producer
from mlir_sched.program.rewrites.dag_site import DagSite, Path
from mlir_sched.program.rewrites.folding.affine_run import steps_back
from mlir_sched.program.rewrites.linalg_ops import CONCAT, copied, dim_of, dims_map, generic, number
from mlir_sched.program.rewrites.linear.ahead import Back
from mlir_sched.program.rewrites.linear.behind import Behind
from mlir_sched.program.rewrites.linear.composed import Given, Numbers
from mlir_sched.program.rewrites.linear.facts import Facts
from mlir_sched.program.rewrites.linear.linear_op import Linear
from mlir_sched.program.rewrites.linear.placed import PlacedStep, placed_in_front
from mlir_sched.program.rewrites.linear.step import Parts, Step, parts


@dataclass(frozen=True)
class JoinedFront(DagSite):
    """An op that joins tensors, and what scales or shifts these: the join is scaled and shifted by joined numbers.

    Attributes:
        op: The op that joins.
        fronts: The ops in front of each of its operands, the nearest one first.
    """

    op: Any
    fronts: tuple[tuple[Step, ...], ...]

    @property
    def root(self) -> Any:
        """The op that joins."""
        return self.op

    @property
    def along(self) -> Path:
        """The way to the op itself."""
        return ()

    @property
    def placed(self) -> list[list[PlacedStep]]:
        """The ops in front of each operand, the nearest one first."""
        return [placed_in_front(steps, (place,))[0] for place, steps in enumerate(self.fronts)]

    @property
    def ops(self) -> list[Path]:
        """The ways to all ops that a matcher compares, the last one first."""
        return [(), *self.readers]

    @property
    def readers(self) -> dict[Path, int]:
        """How many ops may read the result of each op that is gone: one."""
        return {each.way: 1 for front in self.placed for each in front}

    @property
    def images(self) -> list[Path]:
        """The ways to what is scaled and shifted."""
        return [placed_in_front(steps, (place,))[1] for place, steps in enumerate(self.fronts)]

    @property
    def leaves(self) -> list[Path]:
        """The ways to what is scaled and shifted, and to all numbers."""
        return [*self.images, *(way for front in self.placed for each in front for way in each.numbers)]

    @property
    def dim(self) -> int:
        """The dimension that the parts follow each other along."""
        return dim_of(self.op)

    @property
    def parts(self) -> Parts:
        """What is done to any element."""
        made = [parts(steps[::-1]) or Parts() for steps in self.fronts]
        return Parts(any(each.scales for each in made), any(each.shifts for each in made))

    def sizes(self, of_parts: Sequence[Sequence[int]]) -> list[int]:
        """Return the sizes of the joined numbers as a factor, given those of every part."""
        found = list(map(max, zip(*of_parts, strict=True)))
        found[self.dim] = self.op.results[0].type.shape[self.dim]
        return found

    def scaled(self, given: Given) -> Given:
        """Return the scaled and shifted join, given the values that the leaves lead to."""
        value = copied(self.op, [given[way] for way in self.images]).results[0]
        own = [Numbers.of_steps(front[::-1], value.type.rank, given) for front in self.placed]
        sizes = self.sizes([each.sizes for each in own])
        dims = tuple(dim for dim, size in enumerate(sizes) if size > 1)
        whole = Numbers(dims, tuple(sizes), None, None)
        scale = self._joined([(each.scale, each.dims) for each in own], whole, 1.0) if self.parts.scales else None
        shift = self._joined([(each.shift, each.dims) for each in own], whole, 0.0) if self.parts.shifts else None
        return {(): whole.applied(value, scale=scale, shift=shift)}

    def replacement(self, given: Given) -> Any:
        """Return the scaled and shifted join."""
        return given[()]

    def _joined(self, own: Sequence[tuple[Any, Sequence[int]]], whole: Numbers, other: float) -> Any:
        """Return the numbers of all operands as one tensor; a number of its own is that of operands that have none."""
        found = list[Any]()
        for (value, dims), operand in zip(own, self.op.operands, strict=True):
            size = operand.type.shape[self.dim]
            shape = [size if dim == self.dim else whole.sizes[dim] for dim in whole.dims]
            empty = tensor.empty(shape, ir.F32Type.get())
            if value is None:
                found.append(linalg.fill(number(ir.F32Type.get(), other), outs=[empty]))
            else:
                maps = [dims_map(len(shape), map(whole.dims.index, dims)), ir.AffineMap.get_identity(len(shape))]
                found.append(generic([value], empty, maps, ["parallel"] * len(shape), lambda x, _: x))
        kind = ir.RankedTensorType.get([whole.sizes[dim] for dim in whole.dims], ir.F32Type.get())
        return tensor.concat(kind, whole.dims.index(self.dim), found)


def joined_fronts(
    linear_ops: Sequence[tuple[Linear, Behind]], facts: Facts, taken: Collection[Any]
) -> Iterator[JoinedFront]:
    """Yield the joins in front of linear ops whose weights can take what scales and shifts the joined tensors.

    Args:
        linear_ops: The linear ops, with what follows each.
        facts: What is known of the program.
        taken: Ops that belong to a linear op already.
    """
    for begin, after in linear_ops:
        walk = Back(begin, facts, taken)
        walk.finish()
        step = walk.next_step()
        if step is None or step.op.name != CONCAT or step.op.parent != begin.op.parent or step.op in taken:
            continue
        fronts = [_front(place, step.op, facts, taken) for place in range(len(step.op.operands))]
        join = JoinedFront(step.op, tuple(fronts))
        is_read_once = all(only_use(each.op.results[0]) for each in (*walk.steps, step))
        if any(fronts) and is_read_once and _is_taken(join, walk) and _is_gain(join, begin, after):
            yield join


def _front(place: int, join: Any, facts: Facts, taken: Collection[Any]) -> tuple[Step, ...]:
    """Return what scales or shifts a joined tensor that nothing else reads, the nearest op first."""
    op = producer(join.operands[place])
    is_near = op is not None and op.parent == join.parent and only_use(op.results[0])
    return tuple(steps_back(op, facts, taken)) if is_near else ()


def _is_taken(join: JoinedFront, walk: Back) -> bool:
    """Say whether the weights of the linear op can take all numbers."""
    begin, facts = walk.begin, walk.facts
    if join.parts.scales and not facts.is_read_alone(begin.op.operands[begin.weights]):
        return False
    ones = [1] * join.op.results[0].type.rank
    every = [sizes for steps in join.fronts for step in steps for sizes in step.number_sizes(facts) or ()]
    return (walk.takes_shifts or not join.parts.shifts) and walk.loops_of([join.sizes([ones, *every])]) is not None


def _is_gain(join: JoinedFront, begin: Linear, after: Behind) -> bool:
    """Say whether the joined tensors have more elements to scale and shift than an addition behind has, if any."""
    saved = sum(step.elements for steps in join.fronts for step in steps)
    is_added = join.parts.shifts and not (after.has_bias or after.parts.shifts)
    return saved > (prod(begin.op.results[0].type.shape) if is_added else 0)
