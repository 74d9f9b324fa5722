"""The dispatches of three networks as data: how often each is called, what it computes and what it moves.

Shapes are those of ResNet-50, MobileNet-V2 and BERT-base (128 tokens), batch 1, f32, channels last, where 1x1
convolutions are matrix products. Element-wise ops are fused into their producers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mlir_sched.search import Demand

BYTES = 4
"""Size of an element."""


@dataclass(frozen=True)
class NetworkTask:
    """One distinct dispatch of a network.

    Attributes:
        demand: Its family, and what a call computes and moves.
        weight: Calls per run.
        weight_bytes: Bytes of its weights, which come from memory; the rest comes from a cache.
        family: The family of ``benchmarks.corpus.families`` whose measured candidates stand for its own.
    """

    demand: Demand
    weight: int
    weight_bytes: float
    family: str


def product(m: int, n: int, k: int, weight: int, *, batch: int = 1) -> NetworkTask:
    """Return a matrix product with weights, or a batch of products without."""
    demand = Demand("product", 2 * batch * m * n * k, BYTES * batch * (m * n + m * k + n * k))
    if batch > 1:
        return NetworkTask(demand, weight, 0, "batched products, transposed")
    return NetworkTask(demand, weight, BYTES * n * k, "products" if m > 1 else "vector x matrix")


def convolution(size: int, channels: int, results: int, window: int, weight: int) -> NetworkTask:
    """Return a convolution whose result has ``size`` x ``size`` pixels."""
    weight_bytes = BYTES * channels * results * window**2
    operations = 2 * size**2 * channels * results * window**2
    demand = Demand("convolution", operations, BYTES * size**2 * (channels + results) + weight_bytes)
    return NetworkTask(demand, weight, weight_bytes, "direct convolutions")


def depthwise(size: int, channels: int, stride: int, weight: int) -> NetworkTask:
    """Return a depthwise 3x3 convolution whose result has ``size`` x ``size`` pixels."""
    demand = Demand("depthwise", 2 * size**2 * channels * 9, BYTES * size**2 * channels * (1 + stride**2))
    return NetworkTask(demand, weight, 0, "depthwise convolutions")


def reduction(rows: int, columns: int, operations: int, weight: int) -> NetworkTask:
    """Return a reduction of rows, such as a softmax, with so many operations per element."""
    demand = Demand("reduction", operations * rows * columns, 2 * BYTES * rows * columns)
    return NetworkTask(demand, weight, 0, "softmax")


def resnet50() -> list[NetworkTask]:
    """Return the dispatches of ResNet-50: four stages of blocks of a 1x1, a 3x3 and a 1x1 convolution."""
    tasks = [convolution(112, 3, 64, 7, 1)]
    before, size_before = 64, 56
    for size, channels, blocks in ((56, 64, 3), (28, 128, 4), (14, 256, 6), (7, 512, 3)):
        pixels = size**2
        tasks += [
            product(size_before**2, channels, before, 1),
            product(pixels, channels, 4 * channels, blocks - 1),
            product(pixels, 4 * channels, channels, blocks),
            product(pixels, 4 * channels, before, 1),
            convolution(size, channels, channels, 3, 1),
            convolution(size, channels, channels, 3, blocks - 1),
        ]
        before, size_before = 4 * channels, size
    return [*tasks, product(1, 1000, 2048, 1), reduction(2048, 49, 1, 1)]


def mobilenet_v2() -> list[NetworkTask]:
    """Return the dispatches of MobileNet-V2: blocks of a 1x1, a depthwise and a 1x1 convolution."""
    tasks, size, channels = [convolution(112, 3, 32, 3, 1)], 112, 32
    for factor, results, blocks, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)
    ):  # fmt: skip
        for step, weight in ((stride, 1), (1, blocks - 1)):
            if weight:
                wide = factor * channels
                tasks += [product(size**2, wide, channels, weight)] if factor > 1 else []
                size //= step
                tasks += [depthwise(size, wide, step, weight), product(size**2, results, wide, weight)]
                channels = results
    return [*tasks, product(49, 1280, 320, 1), product(1, 1000, 1280, 1), reduction(1280, 49, 1, 1)]


def bert_base() -> list[NetworkTask]:
    """Return the dispatches of BERT-base: twelve layers, 768 wide, with twelve heads."""
    return [
        product(128, 768, 768, 48),
        product(128, 3072, 768, 12),
        product(128, 768, 3072, 12),
        product(128, 128, 64, 12, batch=12),
        product(128, 64, 128, 12, batch=12),
        reduction(1536, 128, 5, 12),
        reduction(128, 768, 8, 25),
    ]


NETWORKS: Mapping[str, Callable[[], list[NetworkTask]]] = {
    "ResNet-50": resnet50,
    "MobileNet-V2": mobilenet_v2,
    "BERT-base": bert_base,
}
