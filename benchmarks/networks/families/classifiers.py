"""Classifiers of images by ``torchvision``."""

from __future__ import annotations

from typing import Any

from benchmarks.networks.modules import image


def resnet18() -> tuple[Any, ...]:
    """Return ResNet-18 and an image."""
    return _classifier("resnet18")


def mobilenet_v3_small() -> tuple[Any, ...]:
    """Return MobileNet-V3-small and an image."""
    return _classifier("mobilenet_v3_small")


def mobilenet_v3_large() -> tuple[Any, ...]:
    """Return MobileNet-V3-large and an image."""
    return _classifier("mobilenet_v3_large")


def shufflenet_v2() -> tuple[Any, ...]:
    """Return ShuffleNet-V2 x1.0, which permutes channels, and an image."""
    return _classifier("shufflenet_v2_x1_0")


def densenet121() -> tuple[Any, ...]:
    """Return DenseNet-121, which joins the results of all earlier layers, and an image."""
    return _classifier("densenet121")


def inception_v3() -> tuple[Any, ...]:
    """Return Inception-v3, of parallel convolutions, and an image of 299 x 299."""
    return _classifier("inception_v3", 299, aux_logits=False, init_weights=False)


def regnet_y() -> tuple[Any, ...]:
    """Return RegNet-Y 800MF, of grouped convolutions with squeeze and excitation, and an image."""
    return _classifier("regnet_y_800mf")


def efficientnet_v2_s() -> tuple[Any, ...]:
    """Return EfficientNet-V2-S and an image."""
    return _classifier("efficientnet_v2_s")


def _classifier(name: str, size: int = 224, **options: Any) -> tuple[Any, ...]:
    """Return a network of ``torchvision`` and an image.

    Args:
        name: The network in ``torchvision.models``.
        size: Height and width of the image.
        options: What the network is made with.
    """
    import torchvision

    return torchvision.models.get_model(name, weights=None, **options), image(size)
