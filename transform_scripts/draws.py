"""The random variables of a schedule program: what it can draw, and from what."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import cast

from mlir_sched.payload import LinalgOp
from mlir_sched.sampling import (
    Categorical,
    ComputeLocation,
    Distribution,
    IntRange,
    PerfectTile,
    Permutation,
    PowerOfTwo,
)
from mlir_sched.trace import Decision, Recorder
from mlir_sched.transform_scripts.emitter import Emitter, Sampled
from mlir_sched.transform_scripts.structures import Loop, Loops


class Draws(ABC):
    """Draws decisions, and has them emitted.

    Args:
        recorder: Draws or replays the decisions.
        emitter: Receives them as parameters of the script.
    """

    def __init__(self, recorder: Recorder, emitter: Emitter) -> None:
        self._recorder = recorder
        self._emit = emitter

    @abstractmethod
    def extent(self, loop: Loop, op: LinalgOp | None = None) -> int:
        """Return the iterations of a loop that the tile at this point leaves."""

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
        """Draw nested tile sizes of what is left of a loop, outermost first; they divide.

        Args:
            name: Name of the random variable, unique in the trace.
            loop: The loop.
            levels: Number of sizes.
            most: Largest innermost size; 0 is no limit.
            unit: Every size is a multiple of it.
            most_outermost, power_of_two, powers: As ``max_outermost``, ``power_of_two`` and ``size_powers`` of
                :class:`~mlir_sched.sampling.PerfectTile`.
            static: The consuming op takes a static number only.
        """
        bounds = (most, unit, most_outermost, power_of_two)
        return self._numbers(name, PerfectTile(self.extent(loop), levels, *bounds, tuple(powers)), static)

    def sample_tile(
        self, name: str, loop: Loop, *, most: int = 0, unit: int = 1, power: float | None = None, static: bool = False
    ) -> Sampled:
        """Draw one tile size; ``power`` is that of the size in its chance, the rest as in :meth:`sample_tiles`."""
        powers = () if power is None else (power,)
        return self.sample_tiles(name, loop, 1, most=most, unit=unit, powers=powers, static=static)[0]

    def sample_int(self, name: str, low: int, high: int, *, step: int = 1, static: bool = False) -> Sampled:
        """Draw an integer of ``low..high``."""
        return self._numbers(name, IntRange(low, high, step), static)[0]

    def sample_power_of_two(self, name: str, low: int, high: int, *, static: bool = False) -> Sampled:
        """Draw a power of two of ``low..high``."""
        return self._numbers(name, PowerOfTwo(low, high), static)[0]

    def sample_number(
        self, name: str, choices: Sequence[int], *, weights: Sequence[float] = (), static: bool = False
    ) -> Sampled:
        """Draw one of several numbers."""
        return self._numbers(name, Categorical(tuple(map(int, choices)), tuple(weights)), static)[0]

    def sample_choice(self, name: str, choices: Sequence[str], *, weights: Sequence[float] = ()) -> str:
        """Draw one of several words; it decides which ops are emitted."""
        return cast(str, self._structural(name, Categorical(tuple(choices), tuple(weights))).value)

    def sample_loop(self, name: str, loops: Sequence[Loop]) -> Loop:
        """Draw one of several loops, which traces call by their names."""
        by_name = {loop.name: loop for loop in loops}
        return by_name[self.sample_choice(name, tuple(by_name))]

    def sample_order(self, name: str, loops: Sequence[Loop]) -> Loops:
        """Draw an order of loops, which traces call by their names."""
        by_name = {loop.name: loop for loop in loops}
        order = cast("tuple[str, ...]", self._structural(name, Permutation(tuple(by_name))).value)
        return tuple(by_name[chosen] for chosen in order)

    def sample_compute_location(self, name: str, locations: Sequence[str]) -> str:
        """Draw the loop to fuse at, from places named outermost first."""
        return cast(str, self._structural(name, ComputeLocation(tuple(locations))).value)

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
        self._recorder.decide(name, distribution)
        return self._recorder.decision(name)
