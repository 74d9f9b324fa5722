"""Linear ops that read channels which are not in the order in which they are made."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.channels.moves import Span, moved
from mlir_sched.program.rewrites.channels.order import Numbers, Run, numbered, runs, sorted_places
from mlir_sched.program.rewrites.channels.origin import Origin
from mlir_sched.program.rewrites.channels.passing import Passing
from mlir_sched.program.rewrites.dag_site import Path
from mlir_sched.program.rewrites.layout.placed_rewrite import PlacedSite
from mlir_sched.program.rewrites.linear.linear_op import INIT, Linear


@dataclass(frozen=True, eq=False)
class Step:
    """An op between the moves of channels and the linear op that reads them.

    Attributes:
        op: A move that keeps all channels, or an op that computes every channel alike.
        way: The way to the op.
        span: The dimensions of channels in its result.
        passing: What is known of an op that computes; None for a move.
    """

    op: Any
    way: Path
    span: Span
    passing: Passing | None


@dataclass(frozen=True, eq=False)
class PermutedRead(PlacedSite):
    """A linear op that sums channels, with what is in front of it.

    Attributes:
        op: The linear op.
        linear: What is known of it.
        span: The dimensions of channels in what it reads: one, or one of groups and one of the channels of each.
        steps: The ops in front of it, the nearest one first.
        end: The way to what the last of them reads.
        origin: Where the channels of that come from.
    """

    op: Any
    linear: Linear
    span: Span
    steps: tuple[Step, ...]
    end: Path
    origin: Origin

    @cached_property
    def compared(self) -> Mapping[Path, Any]:
        """The linear op, the ops in front of it, and those that say what these start with; no moves behind them."""
        starts = {
            (*way, place): producer(each.op.operands[place]) for way, each in self.passed for place in each.starts
        }
        return {(): self.op} | {step.way: step.op for step in self.steps} | starts

    @cached_property
    def form(self) -> tuple[Hashable, ...]:
        """A key, equal for sites whose ops and moves are compared alike, and lead to the inputs alike."""
        return *super().form, self.span, self.end, *self.origin.sources.values(), *self.origin.form

    @property
    def built(self) -> tuple[Hashable, ...]:
        """Nothing that does not follow from the form."""
        return ()

    @cached_property
    def leaves(self) -> Mapping[Path, Any]:
        """The values that the replacement is computed from, by the ways to them."""
        own = {way: self.op.operands[way[0]] for way in (self.weights, self.start)}
        sources = {way: value for value, way in self.origin.sources.items()}
        read = {(*way, *to): value for way, each in self.passed for to, value in each.read.items()}
        return sources | own | read

    @property
    def inputs(self) -> list[Any]:
        """The values that the replacement is computed from."""
        return list(self.leaves.values())

    @property
    def passed(self) -> list[tuple[Path, Passing]]:
        """The ops in front of it that compute something, the farthest one first, with the ways to them."""
        return [(step.way, step.passing) for step in reversed(self.steps) if step.passing is not None]

    @property
    def moves(self) -> list[Any]:
        """All ops that move channels."""
        return [*(step.op for step in self.steps if step.passing is None), *self.origin.moves]

    @property
    def weights(self) -> Path:
        """The way to the weights."""
        return (self.linear.weights,)

    @property
    def start(self) -> Path:
        """The way to what the sums start with."""
        return (INIT,)

    @property
    def weight_dims(self) -> list[int]:
        """The dimensions of the weights that channels, and groups, lie along."""
        own, read = self.linear.loops[self.linear.weights], self.linear.loops[self.linear.image]
        return [own.index(loop) for loop in read[self.span.first : self.span.end]]

    @property
    def runs(self) -> list[Run]:
        """The runs of channels that are read in place of those in the model's order."""
        sizes = [value.type.shape[self.span.first] for value in self.origin.sources]
        return runs(self._arranged[0].ravel()[self._places].tolist(), sizes)

    @property
    def orders(self) -> Mapping[Path, Numbers]:
        """Which channels the ops on the way compute, in their new order, by the ways to the ops."""
        ways = (way for way, _ in self.passed)
        return {way: each.ravel()[self._places] for way, each in zip(ways, self._arranged[1:], strict=True)}

    @property
    def weight_places(self) -> Numbers:
        """Which channels of the weights each channel of the new order needs, over the dimensions of channels."""
        shape = self._arranged[0].shape
        places: Numbers = self._places.reshape(shape) % shape[-1]
        return places

    @property
    def is_sorted(self) -> bool:
        """Whether the channels are read in the order in which they are made."""
        return bool((self._places == numbered(self._places.size)).all())

    @cached_property
    def _places(self) -> Numbers:
        """The channels that are read, by their places in the model, in their new order."""
        return sorted_places(self._arranged[0])

    @cached_property
    def _arranged(self) -> list[Numbers]:
        """The channels that are read, by their numbers among those of the sources, then of each op on the way."""
        known = [self.origin.numbers]
        for step in reversed(self.steps):
            if step.passing is None:
                known = [moved(step.op, step.span, [each]) for each in known]
            else:
                known.append(numbered(known[0].size))
        return known
