"""The random variables that a schedule program can draw, and their distributions."""

from collections.abc import Sequence
from typing import cast

from mlir_sched.sampling import Categorical, Distribution, IntRange, PerfectTile, Permutation, PowerOfTwo, shared
from mlir_sched.trace import Decision
from mlir_sched.transform_scripts.emitter import Sampled
from mlir_sched.transform_scripts.extents import is_uneven, powers_of_two, vector_multiple
from mlir_sched.transform_scripts.structures import Loop, Loops
from mlir_sched.transform_scripts.verbs.facts import FactsMixin

DIVIDE, PEEL, MASK = "divisor", "peel", "mask"
"""Tail strategies, as traces call them: sizes that divide; the last iterations peeled off; masked vectors."""


class DrawsMixin(FactsMixin):
    """The draws of a schedule program: each draws a decision and emits it."""

    def sample_tiles(
        self,
        name: str,
        loop: Loop,
        levels: int,
        *,
        most: int = 0,
        unit: int = 1,
        most_outermost: int = 0,
        power_of_two: bool = False,
        powers: Sequence[float] = (),
        static: bool = False,
    ) -> tuple[Sampled, ...]:
        """Draw nested tile sizes of a loop in the current tile, outermost first; each divides the size outside of it.

        Args:
            name: Name of the random variable, unique in the trace.
            most: Largest innermost size; 0 is no limit.
            unit: Every size is a multiple of ``unit``, unless no divisor within the bounds is.
            most_outermost, power_of_two, powers: As ``max_outermost``, ``power_of_two`` and ``size_powers`` of
                :class:`~mlir_sched.sampling.PerfectTile`.
            static: Whether the consuming op only takes static numbers.
        """
        bounds = (int(most), int(unit), int(most_outermost), power_of_two)
        values = (int(self.extent(loop)), levels, *bounds, tuple(map(float, powers)))
        return self._numbers(name, shared(PerfectTile, *values), static)

    def sample_tile(
        self, name: str, loop: Loop, *, most: int = 0, unit: int = 1, power: float | None = None, static: bool = False
    ) -> Sampled:
        """Draw one tile size, with chances in proportion to size ** ``power``; the rest as in :meth:`sample_tiles`."""
        powers = () if power is None else (power,)
        return self.sample_tiles(name, loop, 1, most=most, unit=unit, powers=powers, static=static)[0]

    def sample_tail(self, ways: Sequence[str], *, weights: Sequence[float] = ()) -> str:
        """Draw the tail strategy ``tail``: what becomes of the iterations that tiles leave over; note the strategy.

        Args:
            ways: What may be drawn beside :data:`DIVIDE`: :data:`PEEL`, :data:`MASK`. Without any, nothing is drawn.
            weights: Weight of :data:`DIVIDE`, then of each of the ways; by default all are equal.
        """
        tail = self.sample_choice("tail", (DIVIDE, *ways), weights=weights) if ways else DIVIDE
        if tail != DIVIDE:
            self.notes[f"tail_{tail}"] = True
        return tail

    def sample_vectors(self, name: str, loop: Loop, lanes: int, *, most: int, static: bool = False) -> Sampled:
        """Draw a tile size of 1, 2, 4, ... whole vectors, which need not divide the loop; the size is in elements.

        Args:
            name: Name of the random variable, unique in the trace.
            loop: The loop; its current tile holds one vector or more.
            most: Most vectors of the tile.
            static: Whether the consuming op only takes static numbers.
        """
        extent = self.extent(loop)
        sizes = [lanes * vectors for vectors in powers_of_two(most) if lanes * vectors <= extent]
        return self.sample_number(name, sizes, static=static)

    def sample_vector_tile(
        self, name: str, loop: Loop, lanes: int, tail: str, *, most: int, static: bool = False
    ) -> Sampled:
        """Draw a tile size of a loop that vectors lie along: whole vectors where there is a tail, else a divisor.

        Args:
            name, loop, lanes, most, static: As in :meth:`sample_vectors`.
            tail: The tail strategy; only an uneven extent has a tail.
        """
        extent = self.extent(loop)
        if tail != DIVIDE and is_uneven(extent, lanes):
            return self.sample_vectors(name, loop, lanes, most=most, static=static)
        return self.sample_tile(name, loop, most=lanes * most, unit=vector_multiple(extent, lanes), static=static)

    def sample_int(self, name: str, low: int, high: int, *, step: int = 1, static: bool = False) -> Sampled:
        """Draw an integer of ``low..high``."""
        return self._numbers(name, shared(IntRange, int(low), int(high), int(step)), static)[0]

    def sample_power_of_two(self, name: str, low: int, high: int, *, static: bool = False) -> Sampled:
        """Draw a power of two of ``low..high``."""
        return self._numbers(name, shared(PowerOfTwo, int(low), int(high)), static)[0]

    def sample_number(
        self, name: str, choices: Sequence[int], *, weights: Sequence[float] = (), static: bool = False
    ) -> Sampled:
        """Draw one of several numbers."""
        distribution = shared(Categorical, tuple(map(int, choices)), tuple(map(float, weights)))
        return self._numbers(name, distribution, static)[0]

    def sample_choice(self, name: str, choices: Sequence[str], *, weights: Sequence[float] = ()) -> str:
        """Draw one of several words; the word decides which ops are emitted."""
        distribution = shared(Categorical, tuple(choices), tuple(map(float, weights)))
        return cast(str, self._structural(name, distribution).value)

    def sample_yes(self, name: str, *, yes: float, no: float) -> bool:
        """Draw ``yes`` or ``no``, with the given weights; return whether the word is ``yes``."""
        return self.sample_choice(name, ("yes", "no"), weights=(yes, no)) == "yes"

    def sample_loop(self, name: str, loops: Sequence[Loop]) -> Loop:
        """Draw one of several loops; traces hold the loop's name."""
        by_name = {loop.name: loop for loop in loops}
        return by_name[self.sample_choice(name, tuple(by_name))]

    def sample_order(self, name: str, loops: Sequence[Loop], *, still: Sequence[Loop] = ()) -> Loops:
        """Draw an order of loops; traces hold the loops' names.

        Args:
            still: Those of the loops that have a single iteration: their place makes no other program.
        """
        by_name = {loop.name: loop for loop in loops}
        distribution = shared(Permutation, tuple(by_name), tuple(loop.name for loop in still))
        order = cast("tuple[str, ...]", self._structural(name, distribution).value)
        return tuple(by_name[chosen] for chosen in order)

    def _numbers(self, name: str, distribution: Distribution, static: bool) -> tuple[Sampled, ...]:
        decision = self._decide(name, distribution)
        values = decision.value if isinstance(decision.value, tuple) else (decision.value,)
        return tuple(
            Sampled(int(value), decision, element, None if static else self._emit.param(decision, element))
            for element, value in enumerate(values)
        )

    def _structural(self, name: str, distribution: Distribution) -> Decision:
        decision = self._decide(name, distribution)
        self._emit.choice(decision)
        return decision

    def _decide(self, name: str, distribution: Distribution) -> Decision:
        self._handles.settle()  # so that the ops of earlier verbs stand in the script in front of the decision
        self._recorder.decide(name, distribution)
        return self._recorder.decision(name)
