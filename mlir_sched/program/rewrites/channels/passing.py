"""Ops that compute every channel alike from the same channel of one value, with numbers of their own per channel.

Such are element-wise ops, depthwise convolutions, poolings, padding, and reshapes of other dimensions. Of channels in
another order they compute their result in that order, once their numbers are in that order, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import captures_constants_alone, producer, walk
from mlir_sched.payload import PAD
from mlir_sched.program.rewrites.convolution_ops import is_static_f32
from mlir_sched.program.rewrites.dag_site import Path
from mlir_sched.program.rewrites.linalg_ops import (
    COLLAPSE,
    EXPAND,
    collapse,
    copied_with_constants,
    depends_on,
    groups_of,
    maps_of,
)
from mlir_sched.program.rewrites.linear.facts import Facts
from mlir_sched.program.rewrites.linear.linear_op import source_loops
from mlir_sched.program.rewrites.linear.moves import repeated
from mlir_sched.program.rewrites.padding.tensor_pad import number_around, sides_of
from mlir_sched.program.rewrites.placed.links import Link


@dataclass(frozen=True)
class Passing:
    """An op that computes every channel alike.

    Attributes:
        op: The op.
        place: Which of its operands has the channels.
        numbers: The ways from the op to its numbers per channel, each with the dimension that channels lie along.
        others: The ways to what else it reads, which is the same for all channels.
        starts: Which of its operands are made by ops that say so.
        merged: The dimensions of channels, in what it reads, that it makes one; none where they are one before.
    """

    op: Any
    place: int
    numbers: Mapping[Path, int]
    others: tuple[Path, ...] = ()
    starts: tuple[int, ...] = ()
    merged: tuple[int, ...] = ()

    @property
    def links(self) -> list[Link]:
        """The channels, and what is made by ops that say so, as it reads them."""
        return [Link(self.op, place) for place in (self.place, *self.starts)]

    @property
    def ops(self) -> list[Any]:
        """The op, and those that make its operands and say so."""
        return [self.op, *(producer(self.op.operands[place]) for place in self.starts)]

    @property
    def read(self) -> Mapping[Path, Link]:
        """Its numbers, and what else it reads, by the ways to them."""
        return {way: self._at(way) for way in (*self.numbers, *self.others)}

    def _at(self, way: Path) -> Link:
        """Return the operand that a way leads to, or what that is a copy of."""
        if len(way) == 1:
            return Link(self.op, way[0])
        return Link(producer(self.op.operands[way[0]]), way[1])

    def copy(self, value: Any, given: Mapping[Path, Any]) -> Any:
        """Return the result for other channels.

        Args:
            value: The channels.
            given: The numbers of these channels, and what else is read, by the ways from the op.
        """
        if self.merged:
            return collapse(value, self._groups)
        operands = {self.place: value}
        for way, each in given.items():
            operands[way[0]] = each if len(way) == 1 else repeated(producer(self.op.operands[way[0]]), each)
        return copied_with_constants(self.op, [operands[place] for place in range(len(operands))]).results[0]

    @property
    def _groups(self) -> list[list[int]]:
        """The dimensions that it merges, of channels that lie along one."""
        first, more = self.merged[0], len(self.merged) - 1
        return [sorted({dim - min(max(dim - first, 0), more) for dim in group}) for group in groups_of(self.op)]


def passing(op: Any, dim: int, facts: Facts) -> Passing | None:
    """Return an op as one that computes every channel alike; None for any other op.

    Args:
        op: The op; None for what no op makes.
        dim: The dimension of channels, in its result and in what it reads.
        facts: What is known of the program.
    """
    if op is None or not captures_constants_alone(op):
        return None
    if op.name == PAD:
        return Passing(op, 0, {}) if number_around(op) and not any(side[dim] for side in sides_of(op)) else None
    if op.name in (COLLAPSE, EXPAND):
        return Passing(op, 0, {}) if _reshapes_others(op, dim) else _merging(op, dim)
    return _structured(op, dim, facts) if _is_structured(op) and op.results[0].type.rank > dim else None


def _structured(op: Any, dim: int, facts: Facts) -> Passing | None:
    """Return a structured op, with one loop along the channels of one varying operand and of the result."""
    *maps, last = maps_of(op)
    loop = last.results[dim]
    along = [place for place, each in enumerate(maps) if any(depends_on(expr, loop) for expr in each.results)]
    dims = {place: _walked(maps[place], loop) for place in along}
    varying = [place for place in along if not facts.is_number(op.operands[place])]
    start = _start(op, dim, facts)
    if start is None or _walked(last, loop) != dim or None in dims.values() or len(varying) != 1:
        return None
    (place,) = varying
    numbers: dict[Path, int] = {(each,): own for each, own in dims.items() if own is not None and each != place}
    others = tuple((each,) for each in range(len(maps)) if each not in along)
    if dims[place] != dim:
        return None
    return Passing(op, place, {**numbers, **start.numbers}, (*others, *start.others), start.starts)


def _start(op: Any, dim: int, facts: Facts) -> Passing | None:
    """Return what the last operand is to the channels of the result, where that is known."""
    last = len(op.operands) - 1
    copy = producer(op.operands[last])
    if not [*op.regions[0].blocks[0].arguments[last].uses]:
        return Passing(op, last, {}, ((last,),))
    if copy is None:
        return None
    loops = source_loops(copy)
    if loops is not None and dim not in loops:
        return Passing(op, last, {}, ((last,),), (last,))
    if loops is None or not facts.is_number(copy.operands[0]):
        return None
    return Passing(op, last, {(last, 0): loops.index(dim)}, (), (last,))


def _walked(map_: ir.AffineMap, loop: Any) -> int | None:
    """Return the only dimension that a loop walks, if no other one depends on the loop."""
    dims = [dim for dim, expr in enumerate(map_.results) if depends_on(expr, loop)]
    return dims[0] if len(dims) == 1 and map_.results[dims[0]] == loop else None


def _reshapes_others(op: Any, dim: int) -> bool:
    """Say whether a reshape leaves a dimension as it is."""
    shapes, groups = [list(value.type.shape) for value in (op.operands[0], op.result)], groups_of(op)
    static = len(op.operands) == 1 and is_static_f32(op.operands[0])
    inside = static and dim < min(map(len, (groups, *shapes)))
    return inside and dim in groups[dim] and shapes[0][dim] == shapes[1][dim]


def _merging(op: Any, dim: int) -> Passing | None:
    """Return a reshape that makes one dimension of those of channels, and of others behind them."""
    groups = groups_of(op)
    merged = tuple(groups[dim]) if op.name == COLLAPSE and dim < len(groups) else ()
    return Passing(op, 0, {}, merged=merged) if len(merged) > 1 and merged[0] == dim else None


def _is_structured(op: Any) -> bool:
    """Say whether an op has loops over static tensors of f32, and a body that computes with their elements alone."""
    if not op.name.startswith("linalg.") or len(op.results) != 1 or len(op.regions) != 1:
        return False
    counts = any(inner.name in ("linalg.index", "tensor.extract") for inner in walk(op))
    maps = maps_of(op)
    loops = maps and all(isinstance(expr, ir.AffineDimExpr) for expr in maps[-1].results)
    return bool(loops) and not counts and all(map(is_static_f32, op.operands))
