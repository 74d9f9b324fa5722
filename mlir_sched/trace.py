"""The trace: the ordered decisions of one candidate, and the recorder that draws them or takes given ones.

Plain data: nothing here knows MLIR or IREE. The script form of a trace is in ``transform_scripts/script/building.py``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from mlir_sched.errors import IllegalTraceError
from mlir_sched.sampling import Distribution, Value, distribution_from_json


@dataclass(frozen=True)
class Decision:
    """One random variable with its value.

    Attributes:
        name: Unique within the trace.
        distribution: The distribution that the value was drawn from.
        value: A member of the distribution's support.
    """

    name: str
    distribution: Distribution
    value: Value

    def __post_init__(self) -> None:
        if not self.distribution.contains(self.value):
            raise IllegalTraceError(f"{self.name} = {self.value!r} is not in the support of {self.distribution}")


@dataclass(frozen=True)
class Trace:
    """The ordered decisions of one candidate of one sketch."""

    sketch: str
    decisions: tuple[Decision, ...]

    def __post_init__(self) -> None:
        names = [decision.name for decision in self.decisions]
        if len(set(names)) != len(names):
            raise ValueError(f"decision names must be unique, but got {names}")

    @cached_property
    def values(self) -> dict[str, Value]:
        """The value of every decision by name, in order."""
        return {decision.name: decision.value for decision in self.decisions}

    @cached_property
    def key(self) -> str:
        """A short hash of sketch and values; equal for traces that make the same choices."""
        return _key(self.sketch, self.values)

    def with_value(self, name: str, value: Value) -> Trace:
        """Return a copy with one decision changed.

        The copy may be illegal as a whole: a design space repairs or rejects it (``DesignSpace.repaired``).

        Raises:
            KeyError: No decision has this name.
            IllegalTraceError: The value is not in the decision's support.
        """
        if name not in self.values:
            raise KeyError(name)
        return Trace(self.sketch, tuple(replace(d, value=value) if d.name == name else d for d in self.decisions))

    def to_json(self) -> dict[str, Any]:
        """Return the trace as JSON data."""
        return {
            "sketch": self.sketch,
            "decisions": [
                {
                    "name": d.name,
                    "value": list(d.value) if isinstance(d.value, tuple) else d.value,
                    "distribution": d.distribution.to_json(),
                }
                for d in self.decisions
            ],
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Trace:
        """Return the trace that ``to_json`` described.

        Raises:
            ValueError: The data has another shape, or a distribution is unknown.
            IllegalTraceError: A value is not in its support.
        """
        try:
            return Trace(
                _text(data["sketch"]),
                tuple(
                    _decision(
                        _text(d["name"]),
                        _hashable(d["value"]),
                        *((key, _hashable(value)) for key, value in d["distribution"].items()),
                    )
                    for d in data["decisions"]
                ),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a trace: {error!r}") from error


def key_of_json(data: Mapping[str, Any]) -> str:
    """Return the key of the trace that ``to_json`` described, without a look at its distributions.

    Raises:
        ValueError: The data has another shape.
    """
    try:
        return _key(data["sketch"], {d["name"]: d["value"] for d in data["decisions"]})
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a trace: {error!r}") from error


def _key(sketch: str, values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([sketch, values]).encode()).hexdigest()[:16]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@lru_cache(maxsize=65536, typed=True)
def _decision(name: str, value: Value, *distribution: tuple[str, Any]) -> Decision:
    """Return the decision of JSON data; thousands of stored traces share the same few decisions."""
    return Decision(name, distribution_from_json(dict(distribution)), value)


class OnIllegal(Enum):
    """What a recorder does with a given value that is outside the support."""

    REPAIR = "repair"
    REJECT = "reject"


class Recorder:
    """Draws decisions, or takes given values, and keeps them in order.

    Args:
        given: Values by name; a name that never comes up is ignored when repairing and refused when
            rejecting (:meth:`finish`).
        rng: Source of the values that are not given; None means that every value must be given, unless ``likeliest``.
        on_illegal: What to do with a given value that is not in the support. When repairing, one that is equal
            to a value of the support becomes that value, and in place of one that compares with none, such as sizes of
            another number of levels, a value is drawn from ``rng``.
        likeliest: Whether values that are not given are the likeliest ones of their distributions.
    """

    def __init__(
        self,
        given: Mapping[str, Value] | None = None,
        rng: np.random.Generator | None = None,
        on_illegal: OnIllegal = OnIllegal.REPAIR,
        *,
        likeliest: bool = False,
    ) -> None:
        self._given = given or {}
        self._rng = rng
        self._on_illegal = on_illegal
        self._likeliest = likeliest
        self._decisions: dict[str, Decision] = {}

    def decide(self, name: str, distribution: Distribution) -> Value:
        """Return the value of a new random variable.

        Raises:
            IllegalTraceError: The given value is refused or compares with none, or a value is neither given nor drawn.
            ValueError: The name was used before.
        """
        if name in self._decisions:
            raise ValueError(f"the random variable {name!r} is sampled twice")
        value = self._value(name, distribution)
        self._decisions[name] = Decision(name, distribution, value)
        return value

    def decision(self, name: str) -> Decision:
        """Return a decision already made."""
        return self._decisions[name]

    def finish(self, sketch: str) -> Trace:
        """Return the trace recorded so far.

        Raises:
            IllegalTraceError: When rejecting, a given name was never sampled.
        """
        unused = [name for name in self._given if name not in self._decisions]
        if unused and self._on_illegal is OnIllegal.REJECT:
            raise IllegalTraceError(f"{sketch} has no random variable {unused[0]!r} under these decisions")
        return Trace(sketch, tuple(self._decisions.values()))

    def _value(self, name: str, distribution: Distribution) -> Value:
        if name not in self._given:
            if self._likeliest:
                return distribution.mode()
            if self._rng is None:
                raise IllegalTraceError(f"no value is given for {name!r}")
            return distribution.sample(self._rng)
        value, repairs = self._given[name], self._on_illegal is OnIllegal.REPAIR
        if distribution.contains(value):
            return distribution.canonical(value) if repairs else value
        repaired = distribution.repair(value) if repairs else None
        if repaired is None and repairs and self._rng is not None:
            return distribution.sample(self._rng)
        if repaired is None:
            raise IllegalTraceError(f"{name} = {value!r} is not in the support of {distribution}")
        return repaired
