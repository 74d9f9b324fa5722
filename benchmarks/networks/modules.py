"""What networks share: example inputs and their files, constant masks, and modules that return one tensor.

Runs in the environment of the engines, and imports PyTorch only when called.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

LOGITS, HIDDEN = "logits", "last_hidden_state"
"""Names of results in ``transformers``."""
TOKENS = 128
"""Length of a sequence."""
LEAST_CHANGE = 1e-3
"""Least change of a network's results, relative to the largest, that another input has to make: ten times the
difference from PyTorch that a comparison tolerates. Where results hardly depend on the input, no wrong number shows."""


def input_path(folder: Path, place: int) -> Path:
    """Return where an export writes an input: ``input.npy``, and ``input1.npy`` and so on for those after the first.

    Args:
        place: The input's place among the inputs, from 0.
    """
    return folder / f"input{place or ''}.npy"


def input_paths(folder: Path) -> list[Path]:
    """Return the files of the inputs that are in a folder, in the order of the inputs."""
    paths = list[Path]()
    while (path := input_path(folder, len(paths))).exists():
        paths.append(path)
    return paths


def image(size: int = 224, channels: int = 3) -> Any:
    """Return an image, f32 [1, channels, size, size]."""
    import torch

    return torch.randn(1, channels, size, size)


def tokens() -> Any:
    """Return a sequence, i64 [1, TOKENS]."""
    import torch

    return torch.randint(0, 30000, (1, TOKENS))


def constant_causal_mask() -> Any:
    """Return the mask that hides later tokens, f32 [1, 1, TOKENS, TOKENS].

    The mask that ``transformers`` computes has an operator that ONNX and IREE 3.13 lack (``aten::diff``).
    """
    import torch

    return torch.full((1, 1, TOKENS, TOKENS), torch.finfo(torch.float32).min).triu(1)


def with_result(network: Any, result: str, **constants: Any) -> Any:
    """Return a module that returns one of a network's results.

    Args:
        result: Name of the result, such as ``logits``.
        constants: Tensors that the network takes besides the module's input, by name.
    """
    import torch

    class WithResult(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network
            for name, value in constants.items():
                self.register_buffer(name, value)

        def forward(self, example: Any) -> Any:
            taken = {name: getattr(self, name) for name in constants}
            return getattr(self.network(example, **taken), result)

    return WithResult()


def with_statistics(network: Any, *example: Any) -> Any:
    """Return a network with Kaiming's weights, whose batch norms have the statistics of an example.

    The default weights and statistics let the values of deep networks vanish: their results hardly depend on the input.

    Args:
        network: The network, which is changed, unless it has no batch norm.
    """
    import torch
    from torch import nn
    from torch.nn.modules.batchnorm import _BatchNorm

    if not any(isinstance(module, _BatchNorm) for module in network.modules()):
        return network
    for module in network.modules():
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight)
        elif isinstance(module, _BatchNorm):
            module.reset_parameters()  # some networks begin with scales of zero
            module.momentum = 1.0
    with torch.no_grad():
        network.train()(*example)
    return network


def change_of_results(network: Any, examples: Sequence[Any]) -> float:
    """Return how much a network's results change when its inputs are reversed: the least of all results.

    Returns:
        The largest change of an element, relative to the largest element; 0 for results that are all zeros.
    """
    import torch

    with torch.no_grad():
        results, others = (
            result if isinstance(result, tuple) else (result,)
            for result in (network(*examples), network(*(each.flip([*range(each.ndim)]) for each in examples)))
        )
    changes = (float((one - other).abs().max() / one.abs().max()) for one, other in zip(results, others, strict=True))
    return min(change if change > 0.0 else 0.0 for change in changes)
