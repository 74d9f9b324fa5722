"""Linear ops that read channels which are not in the order in which they are made."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.channels.gathers import stated_indices, unseen_indices
from mlir_sched.program.rewrites.channels.guarded import Guard
from mlir_sched.program.rewrites.channels.moves import Span, moved, read_links
from mlir_sched.program.rewrites.channels.order import ChannelRun, Numbers, numbered, runs, sorted_places
from mlir_sched.program.rewrites.channels.origin import Origin
from mlir_sched.program.rewrites.channels.passing import Passing
from mlir_sched.program.rewrites.linear.linear_op import INIT, Linear
from mlir_sched.program.rewrites.placed.links import Link
from mlir_sched.program.rewrites.placed.placed_rewrite import PlacedSite


@dataclass(frozen=True, eq=False)
class Step:
    """An op between the moves of channels and the linear op that reads them.

    Attributes:
        op: A move that keeps all channels, or an op that computes every channel alike; a reshape of channels and of
            pixels does both.
        span: The dimensions of channels in its result.
        passing: What is known of an op that computes; None for one that only moves.
    """

    op: Any
    span: Span
    passing: Passing | None

    @property
    def links(self) -> list[Link]:
        """What it reads that makes its channels, or says what they start with."""
        return read_links(self.op) if self.passing is None else self.passing.links


@dataclass(frozen=True, eq=False)
class PermutedRead(PlacedSite):
    """A linear op that sums channels, with what is in front of it.

    Attributes:
        op: The linear op.
        linear: What is known of it.
        span: The dimensions of channels in what it reads: one, or one of groups and one of the channels of each.
        steps: The ops in front of it, the nearest one first.
        origin: Where the channels of what the last of them reads come from.
    """

    op: Any
    linear: Linear
    span: Span
    steps: tuple[Step, ...]
    origin: Origin

    @cached_property
    def links(self) -> list[Link]:
        """What the linear op, the ops in front of it and the moves read that has to be what it is."""
        steps = (link for step in self.steps for link in step.links)
        moves = (link for op in self.origin.moves for link in read_links(op))
        return [Link(self.op, self.linear.image), *steps, *moves, *self._stated]

    @cached_property
    def leaves(self) -> list[Link]:
        """What the replacement is computed from: sources, weights, what sums start with, what ops read, and guards."""
        read = {link.value: link for link in reversed(self.links)}
        passed = (link for each in self.passed for link in each.read.values())
        own = (Link(self.op, place) for place in (self.linear.weights, INIT))
        return [*map(read.__getitem__, self.origin.sources), *own, *passed, *(guard.link for guard in self.guards)]

    @cached_property
    def ops(self) -> list[Any]:
        """All ops that are compared."""
        stated = (producer(link.value) for link in self._stated)
        return list(dict.fromkeys((*(link.op for link in self.links), *self.computing, *stated)))

    @property
    def computing(self) -> list[Any]:
        """The linear op, and those that compute something in front of it."""
        return [self.op, *(op for each in self.passed for op in each.ops)]

    @cached_property
    def built(self) -> tuple[Hashable, ...]:
        """The dimensions and runs that are read, and the order of channels in weights and on the way."""
        orders = (self.weight_places, *self.orders, *(guard.expected for guard in self.guards))
        return self.span, *self.runs, *(tuple(each.ravel().tolist()) for each in orders)

    @property
    def passed(self) -> list[Passing]:
        """The ops in front of it that compute something, the farthest one first."""
        return [step.passing for step in reversed(self.steps) if step.passing is not None]

    @property
    def moves(self) -> list[Any]:
        """All ops that move channels."""
        return [*(step.op for step in self.steps if step.passing is None), *self.origin.moves]

    @cached_property
    def guards(self) -> list[Guard]:
        """The indices on the way that no script sees, the farthest first: sites behind a gather begin with the same."""
        moves = reversed(self.moves)
        return [Guard(Link(op, place), numbers) for op in moves for place, numbers in unseen_indices(op)]

    @property
    def _stated(self) -> list[Link]:
        """The indices on the way that a script sees."""
        return [link for op in self.moves for link in stated_indices(op)]

    @property
    def weight_dims(self) -> list[int]:
        """The dimensions of the weights that channels, and groups, lie along."""
        own, read = self.linear.loops[self.linear.weights], self.linear.loops[self.linear.image]
        return [own.index(loop) for loop in read[self.span.first : self.span.end]]

    @property
    def runs(self) -> list[ChannelRun]:
        """The runs of channels that are read in place of those in the model's order."""
        sizes = [value.type.shape[self.span.first] for value in self.origin.sources]
        return runs(self._arranged[0].ravel()[self._places].tolist(), sizes)

    @property
    def orders(self) -> list[Numbers]:
        """Which channels each of the ops on the way computes, in their new order."""
        return [each.ravel()[self._places] for each in self._arranged[1:]]

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
            if step.passing is None or step.passing.merged:
                known = [moved(step.op, step.span, [each]) for each in known]
            if step.passing is not None:
                known.append(numbered(known[0].size))
        return known
