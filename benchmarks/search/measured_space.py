"""A design space of measured candidates: search without compiling or running anything.

File format (JSON lines, gzip when the name ends in ``.gz``). The first line is the header, each other line one
candidate; all candidates of the (sub-)space are there, failed ones too::

    {"format": "mlir-sched measured space 1", "task": "matmul_256x256x256_f32"}
    {"trace": {"sketch": ..., "decisions": [...]}, "features": [0.5, ...], "seconds": 0.00012}
    {"trace": {"sketch": ..., "decisions": [...]}, "features": [0.7, ...], "seconds": null}

``trace`` is ``Trace.to_json``, ``features`` the same number of finite numbers in every line, ``seconds`` the seconds
per call or null for a failure. Further keys are ignored.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mlir_sched.errors import IllegalTraceError, UserError
from mlir_sched.models.cost_model import LoopGraph
from mlir_sched.sampling import Value
from mlir_sched.trace import Trace

FORMAT = "mlir-sched measured space 1"


@dataclass(frozen=True)
class MeasuredPoint:
    """One line of the file.

    Attributes:
        trace: The candidate.
        features: Its feature row.
        seconds: Seconds per call, > 0; None when it failed.
    """

    trace: Trace
    features: tuple[float, ...]
    seconds: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the point as JSON data."""
        return {"trace": self.trace.to_json(), "features": list(self.features), "seconds": self.seconds}

    @staticmethod
    def from_json(data: dict[str, Any]) -> MeasuredPoint:
        """Return the point that ``to_json`` described."""
        return MeasuredPoint(Trace.from_json(data["trace"]), tuple(data["features"]), data["seconds"])


class MeasuredSpace:
    """The measured candidates as a ``SearchSpace``: sampling and repairing only return measured traces.

    Args:
        points: One or more candidates, with distinct traces and the same number of features.

    Raises:
        ValueError: There is no point, two have the same trace, or their numbers of features differ.
    """

    def __init__(self, task: str, points: Sequence[MeasuredPoint]) -> None:
        self.task = task
        self.points = tuple(points)
        self._index = {point.trace.key: row for row, point in enumerate(self.points)}
        if not points or len(self._index) < len(self.points):
            raise ValueError(f"{task} needs one or more distinct candidates, but has {len(self._index)}")
        self._features = np.array([point.features for point in self.points], dtype=np.float32)
        self._by_sketch: dict[str, list[int]] = {}
        for row, point in enumerate(self.points):
            self._by_sketch.setdefault(point.trace.sketch, []).append(row)
        self._agreeing: dict[tuple[str, ...], dict[tuple[Value, ...], list[int]]] = {}
        shapes = {(p.trace.sketch, *p.trace.values): None for p in self.points}
        self._shapes = tuple((shape[0], frozenset(shape[1:])) for shape in shapes)

    @property
    def sketches(self) -> tuple[str, ...]:
        """Names of the sketches in the order of the table."""
        return tuple(self._by_sketch)

    @property
    def best_s(self) -> float:
        """Seconds per call of the fastest candidate.

        Raises:
            ValueError: Every candidate failed.
        """
        return min(point.seconds for point in self.points if point.seconds is not None)

    def sample(self, rng: np.random.Generator, sketch: str | None = None) -> Trace:
        """Draw a sketch, unless it is given, and one of the sketch's candidates, both uniformly.

        Raises:
            IllegalTraceError: There is no such sketch.
        """
        chosen = sketch or self.sketches[int(rng.integers(len(self.sketches)))]
        rows = self._by_sketch.get(chosen)
        if rows is None:
            raise IllegalTraceError(f"{self.task} has no measured candidate of sketch {chosen!r}")
        return self.points[rows[int(rng.integers(len(rows)))]].trace

    def repaired(self, trace: Trace) -> Trace:
        """Return the trace if it is measured, else a measured trace that agrees with it in every shared variable.

        The second case is that of a changed decision which brings other variables with it; which of several measured
        traces is returned depends on the given trace alone.

        Raises:
            IllegalTraceError: No measured trace fits.
        """
        if trace.key in self._index:
            return self.points[self._index[trace.key]].trace
        own = set(trace.values)
        others = [names for sketch, names in self._shapes if sketch == trace.sketch and names != own]
        for names in sorted(others, key=lambda names: (-len(names & own), sorted(names))):
            rows = self._rows_agreeing(trace, names)
            if rows:
                return self.points[rows[int(trace.key, 16) % len(rows)]].trace
        raise IllegalTraceError(f"{self.task} has no measured candidate with {trace.values}")

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
        return self.points[self._index[trace.key]].seconds

    def _rows_agreeing(self, trace: Trace, names: frozenset[str]) -> list[int]:
        """Return the rows of the trace's sketch that have exactly the named variables and agree in the shared ones."""
        shared = tuple(name for name in trace.values if name in names)
        table_key = (trace.sketch, *sorted(names), "|", *shared)
        if table_key not in self._agreeing:
            table: dict[tuple[Value, ...], list[int]] = {}
            for row in self._by_sketch[trace.sketch]:
                values = self.points[row].trace.values
                if values.keys() == names:
                    table.setdefault(tuple(values[name] for name in shared), []).append(row)
            self._agreeing[table_key] = table
        return self._agreeing[table_key].get(tuple(trace.values[name] for name in shared), [])


def write_measured(path: Path, task: str, points: Iterable[MeasuredPoint]) -> None:
    """Write points into a file in the format of this module's docstring."""
    with _open(path, "wt") as file:
        file.write(json.dumps({"format": FORMAT, "task": task}) + "\n")
        file.writelines(json.dumps(point.to_json()) + "\n" for point in points)


def read_measured(path: Path) -> MeasuredSpace:
    """Read a file in the format of this module's docstring.

    Raises:
        UserError: The file is not in this format; the message names the line of a malformed candidate.
    """
    with _open(path, "rt") as file:
        lines = _numbered_json(path, file)
        _, header = next(lines, (0, None))
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise UserError(f"{path} does not begin with a header of the format {FORMAT!r}")
        points = [_point(path, number, data) for number, data in lines]
    try:
        return MeasuredSpace(str(header["task"]), points)
    except (KeyError, ValueError) as error:
        raise UserError(f"{path} is not a measured space: {error}") from error


def _open(path: Path, mode: Literal["rt", "wt"]) -> IO[str]:
    return gzip.open(path, mode) if path.suffix == ".gz" else path.open(mode)


def _numbered_json(path: Path, file: IO[str]) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(file, start=1):
        try:
            yield number, json.loads(line)
        except ValueError as error:
            raise UserError(f"{path}:{number} is not JSON: {error}") from error


def _point(path: Path, number: int, data: Any) -> MeasuredPoint:
    try:
        return MeasuredPoint.from_json(data)
    except (KeyError, TypeError, ValueError, IllegalTraceError) as error:
        raise UserError(f"{path}:{number} is not a measured candidate: {error!r}") from error
