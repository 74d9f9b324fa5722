"""A graph neural network over the loops of candidates, which learns which of two candidates of a task is faster.

Needs the extra ``gnn``. Source of the idea: "Simulating Execution Time of Tensor Programs using Graph Neural Networks"
(Tomczak et al., 2019). Layers: GATv2 (Brody et al., ICLR 2022) of PyTorch Geometric.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import Linear, ReLU
from torch.nn.functional import softplus
from torch_geometric.nn import GATv2Conv, Sequential, global_max_pool, global_mean_pool

from mlir_sched.models.cost_model import CostModel, Feed, LoopGraph, Measured, Rows
from mlir_sched.models.model_file import read_model, write_model
from mlir_sched.models.torch_state import numbers_of, one_core, restore

_FORMAT = "mlir-sched graph model 1"


@dataclass(frozen=True)
class GraphOptions:
    """How the network is made and trained.

    Attributes:
        width: Numbers of a node within the network; a multiple of ``heads``.
        heads: Heads of each attention layer.
        steps: Steps of the optimiser, each over all rows.
        rate: Its step size.
        partners: Rows of the same task that each row is compared with in a step.
        min_rows: Fewest rows for a fit, as those of the default model.
        seed: Seed of the first weights and of the partners.
    """

    width: int = 32
    heads: int = 2
    steps: int = 120
    rate: float = 0.005
    partners: int = 8
    min_rows: int = 12
    seed: int = 43


@dataclass(frozen=True)
class _Fit:
    """A trained network.

    Attributes:
        mean, deviation: Of each number of a node among the rows that it was trained on.
        slope, offset: What makes throughputs from its scores.
    """

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    network: Any
    slope: float = 1.0
    offset: float = 0.0

    def scores(self, batch: _Batch) -> Any:
        """Return the network's score of every graph, a tensor [n_graphs]."""
        nodes = torch.tensor((batch.nodes - self.mean) / self.deviation, dtype=torch.float32)
        return self.network(nodes, torch.tensor(batch.edges), torch.tensor(batch.graph_of))[:, 0]


@dataclass(frozen=True)
class _Batch:
    """Graphs as one.

    Attributes:
        nodes: ``[n_nodes, n_numbers]``.
        edges: ``[2, n_edges]``, both ways.
        graph_of: ``[n_nodes]``: the number of the graph that each node is of.
    """

    nodes: NDArray[np.float64]
    edges: NDArray[np.int64]
    graph_of: NDArray[np.int64]

    @staticmethod
    def of(graphs: Sequence[LoopGraph]) -> _Batch:
        """Return graphs, of which there has to be one, as one."""
        counts = [len(each.nodes) for each in graphs]
        first = np.cumsum([0, *counts[:-1]])
        edges = np.concatenate([each.edges + start for each, start in zip(graphs, first, strict=True)]).T
        nodes = np.concatenate([each.nodes for each in graphs]).astype(np.float64)
        return _Batch(nodes, np.concatenate([edges, edges[::-1]], axis=1), np.repeat(np.arange(len(graphs)), counts))


class GraphModel(CostModel):
    """Two attention layers over the nodes of a candidate's loops, whose mean and maximum a small network scores.

    It is trained on pairs of rows of one task, weighted by how far apart they are, from the same weights in every fit.
    """

    feeds = frozenset({Feed.GRAPHS})

    def __init__(self, options: GraphOptions | None = None) -> None:
        self._options = options or GraphOptions()
        self._fit: _Fit | None = None

    @property
    def fitted(self) -> bool:
        """True after a fit to enough rows with different throughputs, and after ``load``."""
        return self._fit is not None

    def fit(self, tasks: Sequence[Measured]) -> None:
        """Train a new network; with too few rows, or equal throughputs in each task, the model becomes unfitted."""
        self._fit = None
        telling = [each for each in tasks if len(each.rows) and np.ptp(each.throughput) > 0]
        if sum(len(each.rows) for each in telling) < self._options.min_rows:
            return
        batch = _Batch.of([graph for each in telling for graph in each.rows.graphs])
        deviation = batch.nodes.std(axis=0)
        with one_core(self._options.seed):
            network = _network(batch.nodes.shape[1], self._options)
            fit = _Fit(batch.nodes.mean(axis=0), np.where(deviation > 0, deviation, 1.0), network)
            scores = self._train(fit, batch, telling)
        throughput = np.concatenate([each.throughput for each in telling])
        slope = float(np.cov(scores, throughput, bias=True)[0, 1] / max(scores.var(), 1e-12))
        offset = float(throughput.mean() - slope * scores.mean())
        self._fit = _Fit(fit.mean, fit.deviation, network, slope, offset) if slope > 0 else None

    def predict(self, rows: Rows) -> NDArray[np.float64]:
        """Return the network's scores, made throughputs by a line that keeps their order."""
        fit = self._known()
        with one_core(self._options.seed), torch.no_grad():
            scores: NDArray[np.float64] = fit.scores(_Batch.of(rows.graphs)).numpy().astype(np.float64)
        return fit.offset + fit.slope * scores

    def save(self, path: Path) -> None:
        """Write the network into one JSON file, atomically."""
        fit = self._known()
        scaling = {"mean": fit.mean.tolist(), "deviation": fit.deviation.tolist()}
        line = {"slope": fit.slope, "offset": fit.offset}
        write_model(path, _FORMAT, {**scaling, **line, "network": numbers_of(fit.network)})

    def load(self, path: Path) -> None:
        """Read a network; of the options, ``width`` and ``heads`` have to be those of the fit."""
        data = read_model(path, _FORMAT)
        mean, deviation = np.array(data["mean"]), np.array(data["deviation"])
        with one_core(self._options.seed):
            network = _network(len(mean), self._options)
        restore(network, data["network"])
        self._fit = _Fit(mean, deviation, network, data["slope"], data["offset"])

    def _train(self, fit: _Fit, batch: _Batch, tasks: Sequence[Measured]) -> NDArray[np.float64]:
        """Train the network and return its last scores, [n_rows]."""
        counts = torch.tensor([len(each.rows) for each in tasks])
        first = (counts.cumsum(0) - counts).repeat_interleave(counts)[:, None]
        count = counts.repeat_interleave(counts)[:, None]
        throughput = torch.tensor(np.concatenate([each.throughput for each in tasks]), dtype=torch.float32)
        optimiser = torch.optim.Adam(fit.network.parameters(), lr=self._options.rate)
        for _ in range(self._options.steps):
            partners = first + (torch.rand(len(throughput), self._options.partners) * count).long()
            gap = throughput[:, None] - throughput[partners]
            scores = fit.scores(batch)
            loss = (gap.abs() * softplus(-gap.sign() * (scores[:, None] - scores[partners]))).sum() / gap.abs().sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        with torch.no_grad():
            found: NDArray[np.float64] = fit.scores(batch).numpy().astype(np.float64)
        return found

    def _known(self) -> _Fit:
        if self._fit is None:
            raise RuntimeError("the model is not fitted")
        return self._fit


def _network(numbers: int, options: GraphOptions) -> Any:
    """Return a network for nodes with so many numbers, with random weights."""
    width, heads = options.width, options.heads
    return Sequential(
        "x, edges, graph_of",
        [
            (Linear(numbers, width), "x -> x"),
            ReLU(),
            (GATv2Conv(width, width // heads, heads), "x, edges -> x"),
            ReLU(),
            (GATv2Conv(width, width // heads, heads), "x, edges -> x"),
            ReLU(),
            (global_mean_pool, "x, graph_of -> mean"),
            (global_max_pool, "x, graph_of -> most"),
            (lambda mean, most: torch.cat([mean, most], dim=1), "mean, most -> x"),
            (Linear(2 * width, width), "x -> x"),
            ReLU(),
            (Linear(width, 1), "x -> x"),
        ],
    )
