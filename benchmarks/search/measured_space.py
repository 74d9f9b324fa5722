"""A design space of measured candidates: search without compiling or running anything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mlir_sched.errors import IllegalTraceError
from mlir_sched.models.cost_model import LoopGraph
from mlir_sched.sampling import Value
from mlir_sched.trace import Trace

Variables: TypeAlias = frozenset[tuple[str, str]]
"""The variables of a trace: by name, and by the form of their values. Those of other forms do not compare."""


class MeasuredSpace:
    """The measured candidates as a ``SearchSpace``: sampling and repairing only return measured traces.

    Args:
        name: Name of the space.
        traces: One or more distinct candidates.
        features: Their feature rows, [traces, features].
        seconds: Their seconds per call, [traces]; infinite where they failed, but not for all.

    Raises:
        ValueError: There is no trace, two are the same, or all failed.
    """

    def __init__(
        self, name: str, traces: Sequence[Trace], features: NDArray[np.float32], seconds: NDArray[np.float64]
    ) -> None:
        self.name = name
        self.traces = tuple(traces)
        self._features, self._seconds = features, seconds
        self._index = {trace.key: row for row, trace in enumerate(self.traces)}
        if not traces or len(self._index) < len(self.traces):
            raise ValueError(f"{name} needs one or more distinct candidates, but has {len(self._index)}")
        if not np.isfinite(seconds).any():
            raise ValueError(f"all candidates of {name} failed")
        self._by_sketch: dict[str, list[int]] = {}
        for row, trace in enumerate(self.traces):
            self._by_sketch.setdefault(trace.sketch, []).append(row)
        self._agreeing: dict[tuple[object, ...], dict[tuple[Value, ...], list[int]]] = {}
        self._shapes = tuple({(trace.sketch, _variables(trace)): None for trace in self.traces})

    @property
    def sketches(self) -> tuple[str, ...]:
        """Names of the sketches in the order of the table."""
        return tuple(self._by_sketch)

    @property
    def best_s(self) -> float:
        """Seconds per call of the fastest candidate."""
        return float(self._seconds.min())

    def sample(self, rng: np.random.Generator, sketch: str | None = None) -> Trace:
        """Draw a sketch, unless it is given, and one of the sketch's candidates, both uniformly.

        Raises:
            IllegalTraceError: There is no such sketch.
        """
        chosen = sketch or self.sketches[int(rng.integers(len(self.sketches)))]
        rows = self._by_sketch.get(chosen)
        if rows is None:
            raise IllegalTraceError(f"{self.name} has no measured candidate of sketch {chosen!r}")
        return self.traces[rows[int(rng.integers(len(rows)))]]

    def repaired(self, trace: Trace) -> Trace:
        """Return the trace if it is measured, else a measured trace that agrees with it in every shared variable.

        The second case is that of a changed decision which brings other variables with it, or the same ones with
        values that do not compare; which of several measured traces is returned depends on the given trace alone.

        Raises:
            IllegalTraceError: No measured trace fits.
        """
        if trace.key in self._index:
            return self.traces[self._index[trace.key]]
        own = _variables(trace)
        others = [each for sketch, each in self._shapes if sketch == trace.sketch and each != own]
        for variables in sorted(others, key=lambda each: (-len(each & own), sorted(each))):
            rows = self._rows_agreeing(trace, variables)
            if rows:
                return self.traces[rows[int(trace.key, 16) % len(rows)]]
        raise IllegalTraceError(f"{self.name} has no measured candidate with {trace.values}")

    def graphs(self, traces: Sequence[Trace]) -> list[LoopGraph]:
        """Return graphs of one node, which has the recorded row of the trace; errors as of :meth:`features`."""
        return list(map(LoopGraph.of_row, self.features(traces)))

    def features(self, traces: Sequence[Trace]) -> NDArray[np.float32]:
        """Return the recorded rows, ``[n_traces, n_features]``.

        Raises:
            KeyError: A trace is not measured.
        """
        return self._features[[self._index[trace.key] for trace in traces]]

    def seconds(self, trace: Trace) -> float | None:
        """Return the recorded seconds per call, or None for a failure.

        Raises:
            KeyError: The trace is not measured.
        """
        seconds = float(self._seconds[self._index[trace.key]])
        return seconds if seconds < math.inf else None

    def _rows_agreeing(self, trace: Trace, variables: Variables) -> list[int]:
        """Return the rows of the trace's sketch that have exactly these variables and agree in the shared ones."""
        shared = sorted(variables & _variables(trace))
        table_key = (trace.sketch, variables, *shared)
        if table_key not in self._agreeing:
            table: dict[tuple[Value, ...], list[int]] = {}
            for row in self._by_sketch[trace.sketch]:
                if _variables(self.traces[row]) == variables:
                    values = self.traces[row].values
                    table.setdefault(tuple(values[name] for name, _ in shared), []).append(row)
            self._agreeing[table_key] = table
        return self._agreeing[table_key].get(tuple(trace.values[name] for name, _ in shared), [])


def _variables(trace: Trace) -> Variables:
    """Return the variables of a trace."""
    return frozenset((name, _form(value)) for name, value in trace.values.items())


def _form(value: Value) -> str:
    """Return what values that compare have in common: their type, and how many there are in a tuple."""
    return f"{len(value)}" if isinstance(value, tuple) else type(value).__name__
