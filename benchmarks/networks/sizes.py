"""Networks on smaller inputs: parts of the examples that they are exported with.

Runs in the environment of the engines, and slices PyTorch's tensors without importing it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

SIDES, TOKENS, STEPS, BATCH = (2, 3), (1,), (2,), (0,)
"""Dimensions of an example that may be shorter: of an image, a sequence of tokens, of steps behind channels, rows."""
SHORTER: Mapping[str, tuple[int, ...]] = {
    "resnet18": SIDES,
    "mobilenet_v3_small": SIDES,
    "shufflenet_v2": SIDES,
    "unet": SIDES,
    "bert_mini": TOKENS,
    "distilbert_bf16": TOKENS,
    "gru": TOKENS,
    "tcn": STEPS,
    "speech": STEPS,
    "vocoder": STEPS,
    "pointnet": STEPS,
    "dlrm": BATCH,
}
"""Small networks that take inputs of several sizes, with the dimensions of their examples that are shorter then."""
PARTS = (1, 2, 4)
"""What the lengths of these dimensions are divided by."""


def shortened(examples: Sequence[Any], dims: Sequence[int], part: int) -> tuple[Any, ...]:
    """Return the beginnings of examples: of some dimensions ``1 / part``."""
    slices = [[slice(n // part if at in dims else n) for at, n in enumerate(each.shape)] for each in examples]
    return tuple(each[tuple(own)].contiguous() for each, own in zip(examples, slices, strict=True))
