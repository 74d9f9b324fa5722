"""The networks that are compared with engines: random weights from ``transformers`` with seed 0, batch 1, f32.

Runs in the environment of the engines, and imports PyTorch and ``transformers`` only when a network is made.
"""

from collections.abc import Callable
from typing import Any

from benchmarks.networks.families import FAMILIES, language, vision
from benchmarks.networks.modules import image, tokens, with_statistics
from benchmarks.networks.sizes import SHORTER, shortened


def resnet50() -> tuple[Any, ...]:
    """Return ResNet-50 and an image."""
    return vision.classifier("ResNet"), image()


def changed_resnet50() -> tuple[Any, ...]:
    """Return ResNet-50 with 384 filters in place of 512 in its last 3x3 convolution, and an image.

    A model of which one layer was changed: all but two of the distinct dispatches are those of ResNet-50.
    """
    import torch

    module, example = resnet50()
    _, spatial, wider = module.network.resnet.encoder.stages[-1].layers[-1].layer
    spatial.convolution = torch.nn.Conv2d(512, 384, 3, padding=1, bias=False)
    spatial.normalization = torch.nn.BatchNorm2d(384)
    wider.convolution = torch.nn.Conv2d(384, 2048, 1, bias=False)
    return module, example


def mobilenet_v2() -> tuple[Any, ...]:
    """Return MobileNet-V2 and an image."""
    return vision.classifier("MobileNetV2"), image()


def bert_base() -> tuple[Any, ...]:
    """Return BERT-base's embeddings and encoder, without a mask, and a sequence."""
    return language.bert(), tokens()


def gpt2() -> tuple[Any, ...]:
    """Return GPT-2 without its output embedding and without a cache, its causal mask a constant, and a sequence."""
    return language.gpt2(), tokens()


NETWORKS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "mobilenet_v2": mobilenet_v2,
    "resnet50": resnet50,
    "bert_base": bert_base,
    "gpt2": gpt2,
}
"""Functions that return a module and an example of each of its inputs, by name."""

CHANGED: dict[str, Callable[[], tuple[Any, ...]]] = {"changed_resnet50": changed_resnet50}
"""Functions that return one of the networks with a layer changed, and an example of each input, by name."""


def network(name: str, part: int = 1) -> tuple[Any, tuple[Any, ...]]:
    """Return a network, a changed one or one of another family, ready for inference, and an example of each input.

    They are the same ones in every process. Batch norms have the statistics of the example.

    Args:
        name: The network.
        part: What the lengths of the examples are divided by, for a network in ``SHORTER``.
    """
    import torch

    torch.manual_seed(0)
    module, *examples = {**NETWORKS, **CHANGED, **FAMILIES}[name]()
    if part > 1:
        examples = [*shortened(examples, SHORTER[name], part)]
    return with_statistics(module, *examples).eval(), tuple(examples)
