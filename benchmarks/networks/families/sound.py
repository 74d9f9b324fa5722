"""Networks of sound: one-dimensional convolutions, and Whisper's attention."""

from typing import Any

from benchmarks.networks.modules import HIDDEN, with_result


def whisper_encoder() -> tuple[Any, ...]:
    """Return two layers of Whisper-tiny's encoder, over 1500 positions, and a spectrogram."""
    import torch
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    sizes = {"d_model": 384, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536}
    return with_result(WhisperEncoder(WhisperConfig(encoder_layers=2, **sizes)), HIDDEN), torch.randn(1, 80, 3000)


def wav2vec_front() -> tuple[Any, ...]:
    """Return the seven strided convolutions that wav2vec 2.0 begins with, and half a second of sound at 16 kHz."""
    import torch
    from transformers import Wav2Vec2Config
    from transformers.models.wav2vec2.modeling_wav2vec2 import Wav2Vec2FeatureEncoder

    return Wav2Vec2FeatureEncoder(Wav2Vec2Config()), torch.randn(1, 8000)


def speech() -> tuple[Any, ...]:
    """Return a network of depthwise separable one-dimensional convolutions, as QuartzNet's, and 8 s of 64 features."""
    import torch
    from torch import nn

    def separable(channels: int, filters: int, taps: int, stride: int = 1) -> Any:
        depthwise = nn.Conv1d(channels, channels, taps, stride, taps // 2, groups=channels, bias=False)
        return nn.Sequential(depthwise, nn.Conv1d(channels, filters, 1, bias=False), nn.BatchNorm1d(filters), nn.ReLU())

    same = [separable(128, 128, 33) for _ in range(4)]
    last = [separable(128, 256, 51), nn.Conv1d(256, 512, 1), nn.ReLU(), nn.Conv1d(512, 29, 1)]
    return nn.Sequential(separable(64, 128, 33, 2), *same, *last), torch.randn(1, 64, 800)


def vocoder() -> tuple[Any, ...]:
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
