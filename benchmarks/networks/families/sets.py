"""Networks of tables, points and graphs."""

from itertools import pairwise
from typing import Any


def dlrm() -> tuple[Any, ...]:
    """Return a DLRM with 8 tables of 1000 rows of 32 features, 64 rows of 13 numbers, and their 8 categories each.

    Products of all pairs of features decide beside the numbers; each pair counts once.
    """
    import torch
    from torch import nn

    tables, rows, features = 8, 1000, 32
    vectors = tables + 1

    def products(*widths: int) -> Any:
        return nn.Sequential(*(layer for pair in pairwise(widths) for layer in (nn.Linear(*pair), nn.ReLU())))

    class Dlrm(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(rows, features) for _ in range(tables))
            self.bottom = products(13, 128, 64, features)
            self.top = nn.Sequential(products(features + vectors * (vectors - 1) // 2, 256, 128), nn.Linear(128, 1))
            first, second = torch.tril_indices(vectors, vectors, offset=-1)
            self.register_buffer("pairs", first * vectors + second)

        def forward(self, numbers: Any, categories: Any) -> Any:
            numbers = self.bottom(numbers)
            found = [table(categories[:, place]) for place, table in enumerate(self.tables)]
            every = torch.stack([numbers, *found], dim=1)
            both = torch.flatten(every @ every.transpose(1, 2), 1)
            return torch.sigmoid(self.top(torch.cat([numbers, both.index_select(1, self.pairs)], dim=1)))

    return Dlrm(), torch.randn(64, 13), torch.randint(0, rows, (64, tables))


def pointnet() -> tuple[Any, ...]:
    """Return a PointNet that classifies every point, and 1024 points: products over points, and their maximum."""
    import torch
    from torch import nn

    def over_points(*widths: int) -> Any:
        return nn.Sequential(
            *(layer for pair in pairwise(widths) for layer in (nn.Conv1d(*pair, 1), nn.BatchNorm1d(pair[1]), nn.ReLU()))
        )

    class PointNet(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.near, self.far = over_points(3, 64, 64), over_points(64, 64, 128, 1024)
            self.last = nn.Sequential(over_points(64 + 1024, 512, 256, 128), nn.Conv1d(128, 50, 1))

        def forward(self, points: Any) -> Any:
            own = self.near(points)
            shape = self.far(own).amax(dim=2, keepdim=True)
            return self.last(torch.cat([own, shape.expand(-1, -1, points.shape[2])], dim=1))

    return PointNet(), torch.randn(1, 3, 1024)


def gnn() -> tuple[Any, ...]:
    """Return two layers over a graph, 64 features of 256 nodes, and the graph as a matrix of zeros and ones.

    A layer adds a product of a node's own features to one of the mean of its neighbours' features.
    """
    import torch
    from torch import nn

    nodes = 256

    class Layer(nn.Module):  # type: ignore[misc]
        def __init__(self, features: int, filters: int) -> None:
            super().__init__()
            self.own, self.neighbours = nn.Linear(features, filters), nn.Linear(features, filters, bias=False)

        def forward(self, features: Any, edges: Any) -> Any:
            mean = edges @ features / edges.sum(dim=1, keepdim=True).clamp(min=1.0)
            return torch.relu(self.own(features) + self.neighbours(mean))

    class Graph(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([Layer(64, 128), Layer(128, 64)])

        def forward(self, features: Any, edges: Any) -> Any:
            for layer in self.layers:
                features = layer(features, edges)
            return features

    edges = (torch.rand(nodes, nodes) < 0.05).float()
    return Graph(), torch.randn(nodes, 64), torch.maximum(edges, edges.T)
