"""Classifiers of images, and a segmentation, by ``transformers`` or written out."""

from __future__ import annotations

from typing import Any

from benchmarks.networks.modules import LOGITS, image, with_result


def vit() -> tuple[Any, ...]:
    """Return four layers of ViT-base and an image."""
    from transformers import ViTConfig, ViTForImageClassification

    return with_result(ViTForImageClassification(ViTConfig(num_hidden_layers=4)), LOGITS), image()


def vit_tiny() -> tuple[Any, ...]:
    """Return four layers of 192 features of a ViT and an image."""
    from transformers import ViTConfig, ViTForImageClassification

    sizes = {"hidden_size": 192, "intermediate_size": 768, "num_attention_heads": 3}
    return with_result(ViTForImageClassification(ViTConfig(num_hidden_layers=4, **sizes)), LOGITS), image()


def convnext() -> tuple[Any, ...]:
    """Return ConvNeXt-tiny and an image."""
    from transformers import ConvNextConfig, ConvNextForImageClassification

    return with_result(ConvNextForImageClassification(ConvNextConfig()), LOGITS), image()


def regnet() -> tuple[Any, ...]:
    """Return RegNetX-400MF, of grouped convolutions, and an image."""
    from transformers import RegNetConfig, RegNetForImageClassification

    config = RegNetConfig(hidden_sizes=[32, 64, 160, 384], depths=[1, 2, 7, 12], groups_width=16, layer_type="x")
    return with_result(RegNetForImageClassification(config), LOGITS), image()


def efficientnet() -> tuple[Any, ...]:
    """Return EfficientNet-B0 and an image.

    Its pooling, over windows larger than the image, is replaced, because IREE refuses it.
    """
    import torch
    from transformers import EfficientNetConfig, EfficientNetForImageClassification

    config = EfficientNetConfig(width_coefficient=1.0, depth_coefficient=1.0, image_size=224, hidden_dim=1280)
    network = EfficientNetForImageClassification(config)
    network.efficientnet.pooler = torch.nn.AdaptiveAvgPool2d(1)
    return with_result(network, LOGITS), image()


def swin() -> tuple[Any, ...]:
    """Return eight blocks of Swin-tiny and an image."""
    from transformers import SwinConfig, SwinForImageClassification

    return with_result(SwinForImageClassification(SwinConfig(depths=[2, 2, 2, 2])), LOGITS), image()


def segformer() -> tuple[Any, ...]:
    """Return SegFormer-B0 and an image of 256 x 256.

    The first call installs hooks, which ``torch.export`` cannot follow, so it is made here.
    """
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    network, example = SegformerForSemanticSegmentation(SegformerConfig()), image(256)
    network(example)
    return with_result(network, LOGITS), example


def mlp_mixer() -> tuple[Any, ...]:
    """Return MLP-Mixer-S/16 and an image."""
    return _mixer(layers=8, features=512), image()


def mixer_small() -> tuple[Any, ...]:
    """Return an MLP-Mixer of four layers of 256 features and an image."""
    return _mixer(layers=4, features=256), image()


def _mixer(layers: int, features: int) -> Any:
    """Return an MLP-Mixer over 14 x 14 patches: products over the patches and over the features, in turns."""
    import torch
    from torch import nn

    patches = 14 * 14

    def products(width: int, hidden: int) -> Any:
        return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    class Layer(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(features), nn.LayerNorm(features)])
            self.over_patches, self.over_features = products(patches, features // 2), products(features, 4 * features)

        def forward(self, hidden: Any) -> Any:
            hidden = hidden + self.over_patches(self.norms[0](hidden).transpose(1, 2)).transpose(1, 2)
            return hidden + self.over_features(self.norms[1](hidden))

    class Mixer(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, features, 16, stride=16)
            self.layers = nn.Sequential(*(Layer() for _ in range(layers)), nn.LayerNorm(features))
            self.last = nn.Linear(features, 1000)

        def forward(self, picture: Any) -> Any:
            hidden = self.layers(torch.flatten(self.patches(picture), 2).transpose(1, 2))
            return self.last(hidden.mean(dim=1))

    return Mixer()
