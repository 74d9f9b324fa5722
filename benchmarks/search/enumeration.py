"""Counts and enumerates the legal traces of a sketch."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mlir_sched.errors import IllegalTraceError
from mlir_sched.sampling import Distribution, Value
from mlir_sched.trace import Recorder, Trace

MOST_STEPS = 40_000
"""Largest number of runs of the schedule program for an exact count, about 10 s."""
DESCENTS = 4_000
"""Random descents of an estimate."""


@dataclass(frozen=True)
class Size:
    """The number of legal traces of a sketch, counted or estimated.

    Attributes:
        traces: The number, or its estimate.
        error: Standard error of an estimate; 0 for an exact number.
    """

    traces: float
    error: float = 0.0

    @property
    def exact(self) -> bool:
        return self.error == 0.0

    def __str__(self) -> str:
        return f"{self.traces:.0f}" if self.exact else f"~{self.traces:.1e} ±{self.error / self.traces:.0%}"


class Programs(Protocol):
    """A space whose sketches are programs: a ``DesignSpace``, for one."""

    def run(self, sketch: str, recorder: Recorder, /) -> tuple[Trace, object]:
        """Run the program of a sketch and return its trace and what it describes."""


class _PinnedRecorder(Recorder):
    """A recorder that takes given decisions as they are, and stops at the first decision that is not given."""

    open: tuple[str, Distribution] | None = None

    def decide(self, name: str, distribution: Distribution) -> Value:
        if name not in self._given:
            self.open = (name, distribution)
            raise StopIteration
        if not distribution.contains(self._given[name]):
            raise IllegalTraceError(f"{name} cannot be {self._given[name]!r}")
        return super().decide(name, distribution)


def _run(space: Programs, sketch: str, values: Mapping[str, Value]) -> Trace | tuple[str, Distribution] | None:
    """Return the trace that the values make, the first decision that is open, or None where they break a rule."""
    recorder = _PinnedRecorder(values)
    try:
        return space.run(sketch, recorder)[0]
    except IllegalTraceError:
        return None
    except StopIteration:
        return recorder.open


def enumerate_traces(space: Programs, sketch: str, pinned: Mapping[str, Value] | None = None) -> Iterator[Trace]:
    """Yield every legal trace of a sketch in which the pinned decisions have the given values."""
    return (trace for trace in _steps(space, sketch, pinned or {}, {}) if trace is not None)


def _steps(
    space: Programs, sketch: str, pinned: Mapping[str, Value], values: Mapping[str, Value]
) -> Iterator[Trace | None]:
    """Yield once per run of the program: a trace, or None for a partial or an illegal one."""
    found = _run(space, sketch, {**pinned, **values})
    if not isinstance(found, tuple):
        yield found
        return
    yield None
    name, distribution = found
    for value in distribution.support():
        yield from _steps(space, sketch, pinned, {**values, name: value})


def size_of(space: Programs, sketch: str, rng: np.random.Generator) -> Size:
    """Return the number of legal traces of a sketch: exact where :data:`MOST_STEPS` runs suffice, else estimated.

    The estimate is a mean over random descents of the tree of decisions: of the product of the numbers of choices met,
    or 0 where the descent ends in a broken rule. Source: Knuth, "Estimating the efficiency of backtrack programs"
    (1975).
    """
    legal = 0
    for step, trace in enumerate(_steps(space, sketch, {}, {})):
        legal += trace is not None
        if step == MOST_STEPS:
            break
    else:
        return Size(legal)
    found = np.array([_descend(space, sketch, rng) for _ in range(DESCENTS)])
    return Size(float(found.mean()), float(found.std() / math.sqrt(DESCENTS)))


class _UniformRecorder(Recorder):
    """A recorder that draws every decision uniformly and keeps the product of the numbers of choices."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self._uniform = rng
        self.choices = 1.0

    def _value(self, name: str, distribution: Distribution) -> Value:
        del name
        support = distribution.support()
        self.choices *= len(support)
        return support[int(self._uniform.integers(len(support)))]


def _descend(space: Programs, sketch: str, rng: np.random.Generator) -> float:
    recorder = _UniformRecorder(rng)
    try:
        space.run(sketch, recorder)
    except IllegalTraceError:
        return 0.0
    return recorder.choices
