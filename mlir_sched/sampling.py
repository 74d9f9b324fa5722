"""The sampling primitives of the probabilistic language, as finite discrete distributions.

Every distribution has an enumerable support, and from it come its draw, its membership test, its repair rule and
its mutator. They are plain data: nothing here knows MLIR or IREE.

Source: the primitives are MetaSchedule's (Shao et al., NeurIPS 2022; TVM ``sampling.cc``). Two things differ: tiles
are stored as sizes (a chain of divisors), not as factors, because a size is what a transform op takes; and draws are
uniform over the support unless weights are given.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np

Value: TypeAlias = int | str | tuple[int, ...] | tuple[str, ...]
"""A decision: a number, a word, or a tuple of either."""


@dataclass(frozen=True)
class Distribution(ABC):
    """A finite distribution over decisions."""

    kind: ClassVar[str]

    @abstractmethod
    def support(self) -> tuple[Value, ...]:
        """Return every value, in a fixed order; never empty."""

    @abstractmethod
    def distance(self, first: Value, second: Value) -> float:
        """Return how far apart two values are, >= 0; repair and mutation prefer what is near.

        ``first`` may lie outside the support (a decision from another shape, or edited by hand).
        """

    def weights(self) -> tuple[float, ...] | None:
        """Return one positive weight per value of the support, or None for a uniform draw."""
        return None

    def contains(self, value: Value) -> bool:
        """Say whether the support has this value, of the same type: 4.0 is not 4, and True is not 1."""
        member = self._members.get(value)
        return member is not None and (member is value or _same_types(member, value))

    def sample(self, rng: np.random.Generator) -> Value:
        """Draw one value."""
        support, probabilities = self._chances
        if probabilities is None:
            return support[int(rng.integers(len(support)))]
        return support[bisect_right(probabilities, rng.random())]

    def repair(self, value: Value) -> Value | None:
        """Return the nearest value of the support (the first of equally near ones), or None if no value compares."""
        distances = [self.distance(value, legal) for legal in self.support()]
        best = min(range(len(distances)), key=distances.__getitem__)
        return None if math.isinf(distances[best]) else self.support()[best]

    def mutate(self, value: Value, rng: np.random.Generator) -> Value | None:
        """Return another value, most likely a near one, or None when there is no other.

        The chance of a value falls as 1 / (1 + distance) ** 2, so that steps are mostly small and any value can be
        reached.
        """
        others, probabilities = _mutation_table(self, value)
        if not others:
            return None
        return others[bisect_right(probabilities, rng.random())]

    @cached_property
    def _members(self) -> Mapping[Value, Value]:
        return _support_table(self)

    @cached_property
    def _chances(self) -> tuple[tuple[Value, ...], list[float] | None]:
        return _sampling_table(self)

    def to_json(self) -> dict[str, Any]:
        """Return the distribution as JSON data, ``kind`` first, without defaults; lists stand for tuples."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return {"kind": self.kind} | {k: list(v) if isinstance(v, tuple) else v for k, v in given.items()}


@dataclass(frozen=True)
class PerfectTile(Distribution):
    """Nested tile sizes of one loop: each size divides the one outside it, and the outermost divides the extent.

    A value has ``levels`` sizes, outermost first. For extent 64 and two levels, (32, 8) stands for
    ``for i0 in 0..64 step 32: for i1 in 0..32 step 8``.

    Attributes:
        extent: Loop extent, >= 1.
        levels: Number of sizes, >= 1.
        max_innermost: Upper bound of the innermost size; 0 for none.
        multiple_of: The innermost size is a multiple of this number, unless no divisor within the bounds is.
        max_outermost: Upper bound of the outermost size; 0 for none.
        power_of_two: Whether the innermost size is a power of two.
        size_powers: The chance of a value is proportional to the product of its sizes, each to its power; one power
            per level, or none for a uniform draw.
    """

    kind: ClassVar[str] = "perfect_tile"
    extent: int
    levels: int
    max_innermost: int = 0
    multiple_of: int = 1
    max_outermost: int = 0
    power_of_two: bool = False
    size_powers: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.extent < 1 or self.levels < 1 or self.multiple_of < 1:
            raise ValueError(f"extent, levels and multiple_of must be >= 1, but got {self}")
        if self.size_powers and len(self.size_powers) != self.levels:
            raise ValueError(f"there must be one power per level, but got {self}")

    def support(self) -> tuple[Value, ...]:
        """Return every chain of divisors within the bounds, larger sizes last."""
        return _divisor_chains(
            self.extent, self.levels, self.max_innermost, self.multiple_of, self.max_outermost, self.power_of_two
        )

    def weights(self) -> tuple[float, ...] | None:
        """Return the products of the sizes to their powers, if there are powers."""
        if not self.size_powers:
            return None
        chains = cast("tuple[tuple[int, ...], ...]", self.support())
        return tuple(
            math.prod(size**power for size, power in zip(chain, self.size_powers, strict=True)) for chain in chains
        )

    def distance(self, first: Value, second: Value) -> float:
        """Return the sum of |log2| ratios of the sizes; infinite for another number of levels."""
        return _log_distance(first, second)


@dataclass(frozen=True)
class Categorical(Distribution):
    """One of several numbers or words, with optional weights."""

    kind: ClassVar[str] = "categorical"
    choices: tuple[int, ...] | tuple[str, ...]
    choice_weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.choices or len(set(self.choices)) != len(self.choices):
            raise ValueError(f"choices must be distinct and at least one, but got {self.choices}")
        if self.choice_weights and (len(self.choice_weights) != len(self.choices) or min(self.choice_weights) <= 0):
            raise ValueError(f"there must be one positive weight per choice, but got {self.choice_weights}")

    def support(self) -> tuple[Value, ...]:
        """Return the choices in their order."""
        return self.choices

    def weights(self) -> tuple[float, ...] | None:
        """Return the weights of the choices, if there are any."""
        return self.choice_weights or None

    def distance(self, first: Value, second: Value) -> float:
        """Return the |log2| ratio of numbers, 0 or 1 for words; infinite for a ``first`` that is no choice."""
        if isinstance(first, int) and isinstance(second, int):
            return _log_distance((first,), (second,))
        return 0.0 if first == second else (1.0 if first in self.choices else math.inf)


@dataclass(frozen=True)
class IntRange(Distribution):
    """An integer in ``low..high``, both included, ``step`` apart."""

    kind: ClassVar[str] = "int_range"
    low: int
    high: int
    step: int = 1

    def __post_init__(self) -> None:
        if self.low > self.high or self.step < 1:
            raise ValueError(f"low <= high and step >= 1 must hold, but got {self}")

    def support(self) -> tuple[Value, ...]:
        """Return the integers in ascending order."""
        return tuple(range(self.low, self.high + 1, self.step))

    def distance(self, first: Value, second: Value) -> float:
        """Return the number of steps between two integers; infinite for anything else."""
        if isinstance(first, int) and isinstance(second, int):
            return abs(first - second) / self.step
        return math.inf


@dataclass(frozen=True)
class PowerOfTwo(Distribution):
    """A power of two in ``low..high``; both bounds are powers of two and included."""

    kind: ClassVar[str] = "power_of_two"
    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low < 1 or self.low > self.high or self.low.bit_count() != 1 or self.high.bit_count() != 1:
            raise ValueError(f"low and high must be powers of two, low <= high, but got {self}")

    def support(self) -> tuple[Value, ...]:
        """Return the powers in ascending order."""
        return tuple(1 << exponent for exponent in range(self.low.bit_length() - 1, self.high.bit_length()))

    def distance(self, first: Value, second: Value) -> float:
        """Return the |log2| ratio of two integers; infinite for anything else."""
        if isinstance(first, int) and isinstance(second, int):
            return _log_distance((first,), (second,))
        return math.inf


@dataclass(frozen=True)
class Permutation(Distribution):
    """An order of named items, such as the loops of one tiling level; at most seven items."""

    kind: ClassVar[str] = "permutation"
    items: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.items) <= 7 or len(set(self.items)) != len(self.items):
            raise ValueError(f"there must be 1 to 7 distinct items, but got {self.items}")

    def support(self) -> tuple[Value, ...]:
        """Return every order of the items."""
        return _permutations(self.items)

    def distance(self, first: Value, second: Value) -> float:
        """Return the number of pairs in another order; infinite for other items."""
        if not isinstance(first, tuple) or not isinstance(second, tuple) or set(first) != set(second):
            return math.inf
        position = {item: index for index, item in enumerate(first)}
        ranks = [position[item] for item in second]
        return float(sum(a > b for a, b in itertools.combinations(ranks, 2)))


DISTRIBUTIONS: Mapping[str, type[Distribution]] = {
    cls.kind: cls for cls in (PerfectTile, Categorical, IntRange, PowerOfTwo, Permutation)
}
"""Every sampling primitive by its ``kind``."""


@lru_cache(maxsize=8192, typed=True)
def shared(cls: type[Distribution], *values: Any) -> Distribution:
    """Return the distribution of a class whose fields have these values: the same object for the same values.

    Programs draw from equal distributions thousands of times; the shared object has its tables at hand. Numbers inside
    of tuples have to be of the type that the distribution is written with: 1 and 1.0 are the same value here.
    """
    return cls(*values)


def distribution_from_json(data: Mapping[str, Any]) -> Distribution:
    """Return the distribution that ``to_json`` described.

    Raises:
        ValueError: The kind is unknown, a field is missing or unknown, or a value breaks the primitive's rules.
    """
    cls = DISTRIBUTIONS.get(str(data.get("kind")))
    if cls is None:
        raise ValueError(f"unknown distribution {data.get('kind')!r}; known are {', '.join(DISTRIBUTIONS)}")
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items() if key != "kind"}
    unknown = sorted(set(given) - {field.name for field in fields(cls)})
    if unknown:
        raise ValueError(f"{cls.kind} has no field {unknown[0]!r}")
    try:
        return cls(**given)
    except TypeError as error:
        raise ValueError(f"{cls.kind}: {error}") from error


def divisors(number: int) -> tuple[int, ...]:
    """Return the divisors of a positive number in ascending order."""
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return tuple(sorted({*small, *(number // d for d in small)}))


@lru_cache(maxsize=4096)
def _divisor_chains(
    extent: int, levels: int, max_innermost: int, multiple_of: int, max_outermost: int, power_of_two: bool
) -> tuple[Value, ...]:
    def legal_innermost(size: int, multiple: int) -> bool:
        cap = min(max_innermost or extent, max_outermost or extent)
        return size % multiple == 0 and size <= cap and (not power_of_two or size.bit_count() == 1)

    multiple = multiple_of if any(legal_innermost(d, multiple_of) for d in divisors(extent)) else 1
    chains: list[tuple[int, ...]] = [(d,) for d in divisors(extent) if not max_outermost or d <= max_outermost]
    for _ in range(levels - 1):
        chains = [(*chain, d) for chain in chains for d in divisors(chain[-1])]
    return tuple(chain for chain in chains if legal_innermost(chain[-1], multiple))


@lru_cache(maxsize=256)
def _permutations(items: tuple[str, ...]) -> tuple[Value, ...]:
    return tuple(itertools.permutations(items))


@lru_cache(maxsize=8192)
def _support_table(distribution: Distribution) -> dict[Value, Value]:
    return {value: value for value in distribution.support()}


def _same_types(first: Value, second: Value) -> bool:
    if isinstance(first, tuple) and isinstance(second, tuple):
        return type(second) is tuple and all(map(_same_types, first, second))
    return type(first) is type(second)


@lru_cache(maxsize=8192)
def _sampling_table(distribution: Distribution) -> tuple[tuple[Value, ...], list[float] | None]:
    weights = distribution.weights()
    return distribution.support(), None if weights is None else _cumulative(weights)


@lru_cache(maxsize=65536)
def _mutation_table(distribution: Distribution, value: Value) -> tuple[tuple[Value, ...], list[float]]:
    others = tuple(other for other in distribution.support() if other != value)
    if not others:
        return (), []
    return others, _cumulative([(1.0 + min(distribution.distance(value, other), 1e6)) ** -2 for other in others])


def _cumulative(weights: Sequence[float]) -> list[float]:
    cumulative = np.cumsum(np.asarray(weights, dtype=np.float64))
    cumulative /= cumulative[-1]
    return [*map(float, cumulative[:-1]), 1.0]


def _log_distance(first: Value, second: Value) -> float:
    """Return the sum of |log2| ratios of two tuples of sizes; infinite if they do not compare."""
    if not isinstance(first, tuple) or not isinstance(second, tuple) or len(first) != len(second):
        return math.inf
    total = 0.0
    for a, b in zip(first, second, strict=True):
        if not isinstance(a, int) or not isinstance(b, int):
            return math.inf
        total += abs(_log_position(a) - _log_position(b))
    return total


def _log_position(number: int) -> float:
    """Return log2 of a positive number; the numbers 0, -1, -2, ... get -1, -2, -3, ..."""
    return math.log2(number) if number > 0 else number - 1.0
