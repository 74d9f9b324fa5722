"""The contract of a cost model, which scores candidates of the tasks that it is told; a higher score is better.

::

    class Nearest(CostModel):
        fitted = False

        def fit(self, tasks):
            self._known = np.concatenate([each.rows.features for each in tasks])
            self._throughput = np.concatenate([each.throughput for each in tasks])
            self.fitted = True

        def predict(self, rows):
            distance = ((rows.features[:, None] - self._known) ** 2).sum(axis=2)
            return self._throughput[distance.argmin(axis=1)]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mlir_sched.payload import Dispatch
from mlir_sched.trace import Trace

if TYPE_CHECKING:
    from mlir_sched.targets.target import Target

FloatArray: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
"""Features, scores and throughputs; single or double precision."""
COVERAGE = 0.8
"""Share of the rows whose throughput an interval is to hold."""
REACH = 1.2816
"""Standard deviations from the middle of such an interval to its ends, where errors are normal."""


class Feed(StrEnum):
    """What a cost model reads of a candidate."""

    FEATURES = "features"
    """Its row of numbers."""
    TRACES = "traces"
    """Its trace: the sketch and every decision."""
    GRAPHS = "graphs"
    """Its loops as a graph."""


@dataclass(frozen=True)
class LoopGraph:
    """The loops of a candidate and what flows between them, for models that learn from structure.

    A node is an op, one of its tiling levels, or one of its operands. An edge leads from each operand to the op, from
    the op to its outermost level, from each level to the next inner one, and from there to the operand that the op
    makes.

    Attributes:
        nodes: ``[n_nodes, n_numbers]``, finite: numbers of each node, the same ones in all graphs.
        edges: ``[n_edges, 2]``: the nodes that each edge leaves and reaches.
    """

    nodes: FloatArray
    edges: NDArray[np.int64]

    @staticmethod
    def of_row(features: FloatArray) -> LoopGraph:
        """Return the graph of a space whose loops are not known: one node with the features ``[n_features]``."""
        return LoopGraph(features[None], np.empty((0, 2), dtype=np.int64))

    def __post_init__(self) -> None:
        if self.nodes.ndim != 2 or self.edges.ndim != 2 or self.edges.shape[1] != 2:
            raise ValueError(f"nodes [n, numbers] and edges [n, 2], but got {self.nodes.shape} and {self.edges.shape}")
        if not np.isfinite(self.nodes).all() or (
            self.edges.size and not 0 <= self.edges.min() <= self.edges.max() < len(self.nodes)
        ):
            raise ValueError("nodes must be finite, and edges lead from node to node")


@dataclass(frozen=True)
class ModelTask:
    """The task of candidates, as a cost model is told it.

    Attributes:
        group: Number of the task among those that the model is told of, searched or measured before, >= 0. Only rows of
            one group can be compared.
        dispatch: The dispatch; None for a table of measured candidates, which knows none.
        target: What candidates are compiled for; None like ``dispatch``.
    """

    group: int
    dispatch: Dispatch | None = None
    target: Target | None = None


@dataclass(frozen=True)
class Rows:
    """Candidates of one task as a cost model reads them; what the model does not ask for is empty.

    Attributes:
        features: ``[n_rows, n_features]``, finite; ``[n_rows, 0]`` where the model asks for none.
        traces: One per row; empty where the model asks for none.
        graphs: One per row; empty where the model asks for none.
    """

    task: ModelTask
    features: FloatArray
    traces: tuple[Trace, ...] = ()
    graphs: tuple[LoopGraph, ...] = ()

    def __post_init__(self) -> None:
        counts = {len(each) for each in (self.traces, self.graphs) if each}
        if self.features.ndim != 2 or counts - {len(self.features)}:
            shapes = f"{self.features.shape}, {len(self.traces)} traces and {len(self.graphs)} graphs"
            raise ValueError(
                f"needed are features [rows, n], a trace per row or none, and a graph likewise, but got {shapes}"
            )
        if not np.isfinite(self.features).all():
            raise ValueError("features must be finite")

    def __len__(self) -> int:
        return len(self.features)


@dataclass(frozen=True)
class Measured:
    """Measured candidates of one task.

    Attributes:
        throughput: ``[n_rows]`` in 0..1: best time of the task / time of the row; 0 for a failure.
    """

    rows: Rows
    throughput: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.throughput.shape != (len(self.rows),):
            raise ValueError(f"{len(self.rows)} rows need a throughput each, but got {self.throughput.shape}")
        values = self.throughput
        if values.size and (values.min() < 0.0 or values.max() > 1.0 or np.isnan(values).any()):
            raise ValueError(f"throughput must lie in 0..1, but got {values.min()} to {values.max()}")


class CostModel(ABC):
    """A model that learns from measured candidates which candidates are fast.

    The same calls in the same order must give the same scores in any process.

    Attributes:
        feeds: What the model reads of every candidate; features alone by default.
    """

    feeds: ClassVar[frozenset[Feed]] = frozenset({Feed.FEATURES})

    @property
    @abstractmethod
    def fitted(self) -> bool:
        """Whether :meth:`predict` may be called."""

    @abstractmethod
    def fit(self, tasks: Sequence[Measured]) -> None:
        """Fit the model to the measured candidates of all tasks and forget earlier fits.

        A model may decline to learn from too little data; ``fitted`` is then False.

        Args:
            tasks: The candidates of each task that has any, in the order of their groups.
        """

    @abstractmethod
    def predict(self, rows: Rows) -> NDArray[np.float64]:
        """Return a score per row, ``[n_rows]``, higher is better, on the scale of ``Measured.throughput``.

        The task may be one that the model was not fitted on.

        Raises:
            RuntimeError: The model is not fitted.
        """

    def predict_with_spread(self, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return score and uncertainty (a standard deviation, >= 0) per row, both ``[n_rows]``.

        A model that does not estimate its uncertainty returns zeros.

        Raises:
            RuntimeError: The model is not fitted.
        """
        scores = self.predict(rows)
        return scores, np.zeros_like(scores)

    def predict_interval(self, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends between which the throughput of :data:`COVERAGE` of such rows lies, both ``[n_rows]``.

        By default they follow from score and uncertainty, as if errors were normal.

        Raises:
            RuntimeError: The model is not fitted.
        """
        scores, spread = self.predict_with_spread(rows)
        return scores - REACH * spread, scores + REACH * spread

    def note_errors(self, rows: Rows, throughput: NDArray[np.float64]) -> None:
        """Be told what came of rows that this fit does not know yet: a model may learn how sure it can be.

        By default it does not. What it is told here is no part of a fit, and scores do not depend on it.

        Args:
            throughput: ``[n_rows]``, >= 0: best time that the fit knew of the task / time of the row, so that it may
                exceed 1; where the fit knew none, relative to the best of these rows. 0 for a failure.
        """
        del rows, throughput

    @abstractmethod
    def save(self, path: Path) -> None:
        """Write the fitted model to a file.

        Raises:
            RuntimeError: The model is not fitted.
        """

    @abstractmethod
    def load(self, path: Path) -> None:
        """Read a file that ``save`` wrote; the model is fitted afterwards.

        Raises:
            ValueError: The file is not a model of this kind.
        """


CostModelFactory: TypeAlias = Callable[[], CostModel]
"""What makes the cost model of a search: a class, for one."""
