"""The sampling primitives of the probabilistic language, as finite discrete distributions.

Every distribution has an enumerable support, and from it come its draw, its repair rule and its mutator. Whether a
value belongs to the support is computed and not looked up: distributions of foreign stores and libraries are read, too.
They are plain data: nothing here knows MLIR or IREE.

Source: the primitives are MetaSchedule's (Shao et al., NeurIPS 2022; TVM ``sampling.cc``). Two things differ: tiles
are stored as sizes (a chain of divisors), not as factors, because a size is what a transform op takes; and draws are
uniform over the support unless weights are given.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np

Value: TypeAlias = int | str | tuple[int, ...] | tuple[str, ...]
"""A decision: a number, a word, or a tuple of either."""
MOST_EXTENT = 1 << 32
"""Largest extent of a loop that is read: its divisors are found in 5 ms, and a tensor with more indices has 4 GB."""
MOST_LEVELS = 16
"""Most tile sizes of one loop that are read: three times as many as a machine has levels of memory and parallelism."""
MOST_VALUES = 1_000_000
"""Most values of a distribution that is read: all of them are listed in a second, and the modules here list thousands.
"""


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

    @abstractmethod
    def contains(self, value: Value) -> bool:
        """Say whether the support has this value or an equal one, of the same type: 4.0 is not 4, and True is not 1.

        Equal values, whose distance is 0, mean the same; one of them stands for all in the support.
        """

    @abstractmethod
    def most_values(self) -> int:
        """Return a number of values that the support does not exceed; the support is not listed."""

    def canonical(self, value: Value) -> Value:
        """Return the value of the support that is equal to a value that it contains: mostly the very value."""
        return value

    def mode(self) -> Value:
        """Return the likeliest value, of equally likely ones the first."""
        weights = self.weights()
        return self.support()[0 if weights is None else weights.index(max(weights))]

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
        """Return another value of the support, most likely a near one, or None when all equal the given one.

        The chance of a value falls as 1 / (1 + distance) ** 2, so that steps are mostly small and any value can be
        reached.
        """
        others, probabilities = _mutation_table(self, value)
        if not others:
            return None
        return others[bisect_right(probabilities, rng.random())]

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

    def contains(self, value: Value) -> bool:
        """Say whether the sizes are a chain of divisors within the bounds."""
        if type(value) is not tuple or len(value) != self.levels:
            return False
        outer = self.extent
        for size in value:
            if type(size) is not int or size < 1 or outer % size:
                return False
            outer = size
        fits = not self.max_outermost or cast("int", value[0]) <= self.max_outermost
        return fits and _legal_innermost(self, outer, self._multiple)

    @cached_property
    def _multiple(self) -> int:
        """``multiple_of``, or 1 where no divisor within the bounds is a multiple of it."""
        if self.multiple_of == 1:
            return 1
        possible = any(_legal_innermost(self, size, self.multiple_of) for size in divisors(self.extent))
        return self.multiple_of if possible else 1

    def most_values(self) -> int:
        """Return the number of chains of divisors without any bounds.

        With each level a prime factor of the extent leaves the size or not, so that its exponent never grows.
        """
        return math.prod(math.comb(power + self.levels, self.levels) for power in _prime_powers(self.extent))

    def support(self) -> tuple[Value, ...]:
        """Return every chain of divisors within the bounds, larger sizes last."""
        return _divisor_chains(self)

    def weights(self) -> tuple[float, ...] | None:
        """Return the products of the sizes to their powers, if there are powers."""
        if not self.size_powers:
            return None
        chains = cast("tuple[tuple[int, ...], ...]", self.support())
        return tuple(
            math.prod(size**power for size, power in zip(chain, self.size_powers, strict=True)) for chain in chains
        )

    def mode(self) -> Value:
        """Return the likeliest value, of equally likely ones the largest."""
        weights = self.weights()
        return self.support()[-1 if weights is None else -1 - weights[::-1].index(max(weights))]

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

    def contains(self, value: Value) -> bool:
        """Say whether the value is one of the choices."""
        choices = cast("tuple[Value, ...]", self.choices)
        return value in choices and type(choices[choices.index(value)]) is type(value)

    def most_values(self) -> int:
        """Return the number of choices."""
        return len(self.choices)

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

    def contains(self, value: Value) -> bool:
        """Say whether the value is one of the integers."""
        return type(value) is int and self.low <= value <= self.high and (value - self.low) % self.step == 0

    def most_values(self) -> int:
        """Return the number of integers."""
        return (self.high - self.low) // self.step + 1

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

    def contains(self, value: Value) -> bool:
        """Say whether the value is one of the powers."""
        return type(value) is int and self.low <= value <= self.high and value.bit_count() == 1

    def most_values(self) -> int:
        """Return the number of powers."""
        return self.high.bit_length() - self.low.bit_length() + 1

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
    """An order of named items, such as the loops of one tiling level; at most seven items.

    Attributes:
        items: The items.
        still: Those of them whose place makes no difference, such as loops of one iteration. They are drawn in front of
            the others; orders that differ in their places alone are equal.
    """

    kind: ClassVar[str] = "permutation"
    items: tuple[str, ...]
    still: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= len(self.items) <= 7 or len(set(self.items)) != len(self.items):
            raise ValueError(f"there must be 1 to 7 distinct items, but got {self.items}")
        if not set(self.still) <= set(self.items) or len(set(self.still)) != len(self.still):
            raise ValueError(f"the still items must be distinct ones of the items, but got {self}")

    def contains(self, value: Value) -> bool:
        """Say whether the value is an order of the items, drawn or equal to one that is."""
        same = type(value) is tuple and len(value) == len(self.items) and all(type(item) is str for item in value)
        return same and set(cast("tuple[str, ...]", value)) == set(self.items)

    def most_values(self) -> int:
        """Return the number of orders."""
        return math.factorial(len(self.items))

    def support(self) -> tuple[Value, ...]:
        """Return every order of the items that move, the still ones in front of them."""
        return _permutations(self.items, self.still)

    def canonical(self, value: Value) -> Value:
        """Return the order with the still items in front of the others."""
        order = cast("tuple[str, ...]", value)
        return (*self.still, *(item for item in order if item not in self.still))

    def distance(self, first: Value, second: Value) -> float:
        """Return the number of pairs of moving items in another order; infinite for other items."""
        if not isinstance(first, tuple) or not isinstance(second, tuple) or set(first) != set(second):
            return math.inf
        position = {item: index for index, item in enumerate(first)}
        ranks = [position[item] for item in second if item not in self.still]
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
        ValueError: The kind is unknown, a field is missing, unknown or of another type, a value breaks the primitive's
            rules, or the distribution has more values than :data:`MOST_VALUES` or is otherwise too large.
    """
    cls = DISTRIBUTIONS.get(str(data.get("kind")))
    if cls is None:
        raise ValueError(f"unknown distribution {data.get('kind')!r}; known are {', '.join(DISTRIBUTIONS)}")
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items() if key != "kind"}
    types = {field.name: str(field.type) for field in fields(cls)}
    for name, value in given.items():
        if name not in types:
            raise ValueError(f"{cls.kind} has no field {name!r}")
        if not _FITS[types[name]](value):
            raise ValueError(f"{cls.kind} has a field {name} that is no {types[name]}, or too large")
    try:
        return _of_bounded_size(cls(**given))
    except TypeError as error:
        raise ValueError(f"{cls.kind}: {error}") from error


def _of_bounded_size(distribution: Distribution) -> Distribution:
    """Return a distribution that was read; its support can be listed."""
    if isinstance(distribution, PerfectTile) and (
        distribution.extent > MOST_EXTENT or distribution.levels > MOST_LEVELS
    ):
        raise ValueError(f"extents up to {MOST_EXTENT} and {MOST_LEVELS} levels are read, but not {distribution}")
    if (count := distribution.most_values()) > MOST_VALUES:
        raise ValueError(f"{distribution.kind} may have {count} values; up to {MOST_VALUES} are read")
    return distribution


def _is_number(value: object) -> bool:
    return type(value) is int and abs(value) < 1 << 63


def _is_weight(value: object) -> bool:
    return _is_number(value) or (type(value) is float and math.isfinite(value))


def _all(check: Callable[[object], bool], value: object) -> bool:
    return isinstance(value, tuple) and all(map(check, value))


def _is_word(value: object) -> bool:
    return type(value) is str


_FITS: Mapping[str, Callable[[object], bool]] = {
    "int": _is_number,
    "bool": lambda value: type(value) is bool,
    "tuple[float, ...]": partial(_all, _is_weight),
    "tuple[str, ...]": partial(_all, _is_word),
    "tuple[int, ...] | tuple[str, ...]": lambda value: _all(_is_number, value) or _all(_is_word, value),
}
"""By the type of a field, whether a value that was read is of this type, and of a size that others can store, too."""


@lru_cache(maxsize=4096)
def divisors(number: int) -> tuple[int, ...]:
    """Return the divisors of a positive number in ascending order."""
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return tuple(sorted({*small, *(number // d for d in small)}))


def _prime_powers(number: int) -> list[int]:
    """Return the exponents of a number's prime factors."""
    powers, factor = [], 2
    while factor * factor <= number:
        power = 0
        while number % factor == 0:
            number, power = number // factor, power + 1
        powers.append(power)
        factor += 1
    return [*filter(None, powers), *([1] if number > 1 else [])]


def _legal_innermost(tile: PerfectTile, size: int, multiple: int) -> bool:
    """Say whether a divisor of the extent may be the innermost size of a tile."""
    cap = min(tile.max_innermost or tile.extent, tile.max_outermost or tile.extent)
    return size % multiple == 0 and size <= cap and (not tile.power_of_two or size.bit_count() == 1)


@lru_cache(maxsize=4096)
def _divisor_chains(tile: PerfectTile) -> tuple[Value, ...]:
    chains: list[tuple[int, ...]] = [
        (d,) for d in divisors(tile.extent) if not tile.max_outermost or d <= tile.max_outermost
    ]
    for _ in range(tile.levels - 1):
        chains = [(*chain, d) for chain in chains for d in divisors(chain[-1])]
    return tuple(chain for chain in chains if _legal_innermost(tile, chain[-1], tile._multiple))


@lru_cache(maxsize=256)
def _permutations(items: tuple[str, ...], still: tuple[str, ...]) -> tuple[Value, ...]:
    moving = [item for item in items if item not in still]
    return tuple((*still, *order) for order in itertools.permutations(moving))


@lru_cache(maxsize=8192)
def _sampling_table(distribution: Distribution) -> tuple[tuple[Value, ...], list[float] | None]:
    weights = distribution.weights()
    return distribution.support(), None if weights is None else _cumulative(weights)


@lru_cache(maxsize=65536)
def _mutation_table(distribution: Distribution, value: Value) -> tuple[tuple[Value, ...], list[float]]:
    others = tuple(other for other in distribution.support() if distribution.distance(value, other) > 0)
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
