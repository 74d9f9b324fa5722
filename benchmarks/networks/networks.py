"""The networks: random weights from ``transformers`` with seed 0, batch 1, f32.

Runs in the environment of the engines, and imports PyTorch and ``transformers`` only when a network is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TOKENS = 128
"""Length of a sequence."""


def resnet50() -> tuple[Any, Any]:
    """Return ResNet-50 and an image."""
    from transformers import ResNetConfig, ResNetForImageClassification

    return _of_logits(ResNetForImageClassification(ResNetConfig())), _image()


def mobilenet_v2() -> tuple[Any, Any]:
    """Return MobileNet-V2 and an image."""
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    return _of_logits(MobileNetV2ForImageClassification(MobileNetV2Config())), _image()


def bert_base() -> tuple[Any, Any]:
    """Return BERT-base's embeddings and encoder, without a mask, and a sequence."""
    import torch
    from transformers import BertConfig, BertModel

    class Encoder(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = BertModel(BertConfig(attn_implementation="eager"))

        def forward(self, tokens: Any) -> Any:
            hidden = self.model.embeddings(tokens)
            for layer in self.model.encoder.layer:
                result = layer(hidden)
                hidden = result[0] if isinstance(result, tuple) else result
            return hidden

    return Encoder(), torch.randint(0, 30000, (1, TOKENS))


def gpt2() -> tuple[Any, Any]:
    """Return GPT-2 without its output embedding and without a cache, and a sequence.

    The causal mask is a constant: the mask that ``transformers`` computes has an operator that ONNX lacks.
    """
    import torch
    from transformers import GPT2Config, GPT2Model

    class Decoder(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = GPT2Model(GPT2Config(attn_implementation="eager", use_cache=False))
            hidden = torch.full((1, 1, TOKENS, TOKENS), torch.finfo(torch.float32).min)
            self.register_buffer("mask", hidden.triu(1))

        def forward(self, tokens: Any) -> Any:
            return self.model(tokens, attention_mask=self.mask).last_hidden_state

    return Decoder(), torch.randint(0, 30000, (1, TOKENS))


NETWORKS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "mobilenet_v2": mobilenet_v2,
    "resnet50": resnet50,
    "bert_base": bert_base,
    "gpt2": gpt2,
}
"""Functions that return (module, example input), by name."""


def network(name: str) -> tuple[Any, Any]:
    """Return a network, ready for inference, and an example of its input; the same ones in every process."""
    import torch

    torch.manual_seed(0)
    module, example = NETWORKS[name]()
    return module.eval(), example


def _image() -> Any:
    import torch

    return torch.randn(1, 3, 224, 224)


def _of_logits(module: Any) -> Any:
    import torch

    class Logits(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = module

        def forward(self, image: Any) -> Any:
            return self.model(image).logits

    return Logits()
