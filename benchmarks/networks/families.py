"""Networks of other families: random weights with seed 0, batch 1, f32 unless the name says otherwise.

Runs in the environment of the engines, and imports PyTorch and ``transformers`` only when a network is made. Deep
networks are cut to a few layers: the dispatches of further layers are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.networks.modules import HIDDEN, LOGITS, constant_causal_mask, image, tokens, with_result


def vit() -> tuple[Any, Any]:
    """Return four layers of ViT-base and an image."""
    from transformers import ViTConfig, ViTForImageClassification

    return with_result(ViTForImageClassification(ViTConfig(num_hidden_layers=4)), LOGITS), image()


def convnext() -> tuple[Any, Any]:
    """Return ConvNeXt-tiny and an image."""
    from transformers import ConvNextConfig, ConvNextForImageClassification

    return with_result(ConvNextForImageClassification(ConvNextConfig()), LOGITS), image()


def regnet() -> tuple[Any, Any]:
    """Return RegNetX-400MF, of grouped convolutions, and an image."""
    from transformers import RegNetConfig, RegNetForImageClassification

    config = RegNetConfig(hidden_sizes=[32, 64, 160, 384], depths=[1, 2, 7, 12], groups_width=16, layer_type="x")
    return with_result(RegNetForImageClassification(config), LOGITS), image()


def efficientnet() -> tuple[Any, Any]:
    """Return EfficientNet-B0 and an image.

    Its pooling, over windows larger than the image, is replaced, because IREE refuses it. With the default random
    weights the network returns zeros: its weights are Kaiming's, and its batch norms have seen the image.
    """
    import torch
    from transformers import EfficientNetConfig, EfficientNetForImageClassification

    config = EfficientNetConfig(width_coefficient=1.0, depth_coefficient=1.0, image_size=224, hidden_dim=1280)
    network, example = EfficientNetForImageClassification(config), image()
    network.efficientnet.pooler = torch.nn.AdaptiveAvgPool2d(1)
    for module in network.modules():
        if isinstance(module, torch.nn.Conv2d | torch.nn.Linear):
            torch.nn.init.kaiming_normal_(module.weight)
        elif isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1.0
    network.train()(example)
    return with_result(network, LOGITS), example


def unet() -> tuple[Any, Any]:
    """Return a small UNet, with transposed convolutions and a bilinear enlargement, and an image of 128 x 128."""
    import torch
    from torch import nn

    def twice(channels: int, filters: int) -> Any:
        first, second = nn.Conv2d(channels, filters, 3, padding=1), nn.Conv2d(filters, filters, 3, padding=1)
        return nn.Sequential(first, nn.ReLU(), second, nn.ReLU())

    class UNet(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.down = nn.ModuleList([twice(3, 32), twice(32, 64), twice(64, 128)])
            self.up = nn.ModuleList([nn.ConvTranspose2d(128, 64, 2, stride=2), nn.Conv2d(64, 32, 1)])
            self.after = nn.ModuleList([twice(128, 64), twice(64, 32)])
            self.pool, self.last = nn.MaxPool2d(2), nn.Conv2d(32, 2, 1)
            self.enlarge = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)

        def forward(self, picture: Any) -> Any:
            fine = self.down[0](picture)
            middle = self.down[1](self.pool(fine))
            coarse = self.down[2](self.pool(middle))
            middle = self.after[0](torch.cat([self.up[0](coarse), middle], dim=1))
            fine = self.after[1](torch.cat([self.up[1](self.enlarge(middle)), fine], dim=1))
            return self.last(fine)

    return UNet(), image(128)


def swin() -> tuple[Any, Any]:
    """Return eight blocks of Swin-tiny and an image."""
    from transformers import SwinConfig, SwinForImageClassification

    return with_result(SwinForImageClassification(SwinConfig(depths=[2, 2, 2, 2])), LOGITS), image()


def segformer() -> tuple[Any, Any]:
    """Return SegFormer-B0 and an image of 256 x 256.

    The first call installs hooks, which ``torch.export`` cannot follow, so it is made here.
    """
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    network, example = SegformerForSemanticSegmentation(SegformerConfig()), image(256)
    network(example)
    return with_result(network, LOGITS), example


def t5_encoder() -> tuple[Any, Any]:
    """Return four layers of T5-small's encoder and a sequence."""
    from transformers import T5Config, T5EncoderModel

    return with_result(T5EncoderModel(T5Config(num_layers=4)), HIDDEN), tokens()


def llama() -> tuple[Any, Any]:
    """Return four layers of 512 features of LLaMA, its causal mask a constant, and a sequence."""
    from transformers import LlamaConfig, LlamaModel

    sizes = {"hidden_size": 512, "intermediate_size": 1376, "num_attention_heads": 8, "num_key_value_heads": 8}
    network = LlamaModel(LlamaConfig(num_hidden_layers=4, use_cache=False, **sizes))
    return with_result(network, HIDDEN, attention_mask=constant_causal_mask()), tokens()


def distilbert_bf16() -> tuple[Any, Any]:
    """Return three layers of DistilBERT in bf16 and a sequence."""
    import torch
    from transformers import DistilBertConfig, DistilBertModel

    return with_result(DistilBertModel(DistilBertConfig(n_layers=3)).to(torch.bfloat16), HIDDEN), tokens()


def whisper_encoder() -> tuple[Any, Any]:
    """Return two layers of Whisper-tiny's encoder, over 1500 positions, and a spectrogram."""
    import torch
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    sizes = {"d_model": 384, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536}
    return with_result(WhisperEncoder(WhisperConfig(encoder_layers=2, **sizes)), HIDDEN), torch.randn(1, 80, 3000)


def speech() -> tuple[Any, Any]:
    """Return a network of depthwise separable one-dimensional convolutions, as QuartzNet's, and 8 s of 64 features."""
    import torch
    from torch import nn

    def separable(channels: int, filters: int, taps: int, stride: int = 1) -> Any:
        depthwise = nn.Conv1d(channels, channels, taps, stride, taps // 2, groups=channels, bias=False)
        return nn.Sequential(depthwise, nn.Conv1d(channels, filters, 1, bias=False), nn.BatchNorm1d(filters), nn.ReLU())

    same = [separable(128, 128, 33) for _ in range(4)]
    last = [separable(128, 256, 51), nn.Conv1d(256, 512, 1), nn.ReLU(), nn.Conv1d(512, 29, 1)]
    return nn.Sequential(separable(64, 128, 33, 2), *same, *last), torch.randn(1, 64, 800)


def vocoder() -> tuple[Any, Any]:
    """Return a network that makes sound of 64 frames, as HiFi-GAN does: transposed and dilated convolutions."""
    import torch
    from torch import nn

    class Residual(nn.Module):  # type: ignore[misc]
        def __init__(self, channels: int, dilation: int) -> None:
            super().__init__()
            wide = nn.Conv1d(channels, channels, 3, dilation=dilation, padding=dilation)
            narrow = nn.Conv1d(channels, channels, 3, padding=1)
            self.layers = nn.Sequential(nn.LeakyReLU(0.1), wide, nn.LeakyReLU(0.1), narrow)

        def forward(self, sound: Any) -> Any:
            return sound + self.layers(sound)

    def finer(channels: int, filters: int) -> list[Any]:
        return [nn.LeakyReLU(0.1), nn.ConvTranspose1d(channels, filters, 16, 8, 4)]

    layers = [*finer(256, 128), Residual(128, 1), Residual(128, 3), *finer(128, 64), Residual(64, 1), Residual(64, 5)]
    last = [nn.LeakyReLU(0.1), nn.Conv1d(64, 1, 7, padding=3), nn.Tanh()]
    return nn.Sequential(nn.Conv1d(80, 256, 7, padding=3), *layers, *last), torch.randn(1, 80, 64)


FAMILIES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "vit": vit,
    "convnext": convnext,
    "regnet": regnet,
    "efficientnet": efficientnet,
    "unet": unet,
    "swin": swin,
    "segformer": segformer,
    "t5_encoder": t5_encoder,
    "llama": llama,
    "distilbert_bf16": distilbert_bf16,
    "whisper_encoder": whisper_encoder,
    "speech": speech,
    "vocoder": vocoder,
}
"""Functions that return (module, example input), by name."""
