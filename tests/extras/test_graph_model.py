"""The graph model keeps the contract of cost models, and learns from what flows between loops."""

from __future__ import annotations

import numpy as np

from mlir_sched.models import CostModel, LoopGraph, Measured, ModelTask, Rows
from mlir_sched.models.graph_model import GraphModel
from mlir_sched.models.metrics import pair_accuracy
from mlir_sched.testing import CostModelTests


class TestGraphModel(CostModelTests):
    def make(self) -> CostModel:
        return GraphModel()


def task(group: int, count: int, seed: int = 0) -> Measured:
    """Return graphs of four nodes, whose throughput follows from which node the first one is joined to."""
    rng = np.random.default_rng([seed, group])
    graphs, throughput = list[LoopGraph](), list[float]()
    for _ in range(count):
        nodes = np.eye(4, 6)
        nodes[:, 4:] = rng.random((4, 2))
        joined = int(rng.integers(1, 4))
        graphs.append(LoopGraph(nodes, np.array([[0, joined]])))
        throughput.append(joined / 3)
    return Measured(Rows(ModelTask(group), np.empty((count, 0)), graphs=tuple(graphs)), np.array(throughput))


def test_what_is_joined_to_what_decides() -> None:
    model = GraphModel()
    model.fit([task(0, 60), task(1, 60)])
    asked = task(2, 100, seed=1)
    assert pair_accuracy(model.predict(asked.rows), asked.throughput) > 0.9, "the nodes of all graphs are alike"


def test_tasks_are_compared_with_themselves_alone() -> None:
    equal = task(0, 60)
    model = GraphModel()
    model.fit([Measured(equal.rows, np.full(60, 0.2)), Measured(task(1, 60).rows, np.full(60, 0.9))])
    assert not model.fitted, "no pair of one task says anything"
