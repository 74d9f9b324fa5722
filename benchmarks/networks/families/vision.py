"""Classifiers of images, and a segmentation: by ``transformers``, written out, and by ``torchvision``."""

from typing import Any

from benchmarks.networks.modules import LOGITS, image, with_result


def classifier(name: str, **sizes: Any) -> Any:
    """Return a classifier of ``transformers`` by the name of its family, with sizes as its configuration names them."""
    import transformers

    config = getattr(transformers, f"{name}Config")(**sizes)
    return with_result(getattr(transformers, f"{name}ForImageClassification")(config), LOGITS)


def vit() -> tuple[Any, ...]:
    """Return four layers of ViT-base and an image."""
    return classifier("ViT", num_hidden_layers=4), image()


def vit_tiny() -> tuple[Any, ...]:
    """Return four layers of 192 features of a ViT and an image."""
    sizes = {"hidden_size": 192, "intermediate_size": 768, "num_attention_heads": 3}
    return classifier("ViT", num_hidden_layers=4, **sizes), image()


def convnext() -> tuple[Any, ...]:
    """Return ConvNeXt-tiny and an image."""
    return classifier("ConvNext"), image()


def regnet() -> tuple[Any, ...]:
    """Return RegNetX-400MF, of grouped convolutions, and an image."""
    sizes = {"hidden_sizes": [32, 64, 160, 384], "depths": [1, 2, 7, 12], "groups_width": 16}
    return classifier("RegNet", layer_type="x", **sizes), image()


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
    return classifier("Swin", depths=[2, 2, 2, 2]), image()


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


def resnet18() -> tuple[Any, ...]:
    """Return ResNet-18 and an image."""
    return _of_torchvision("resnet18")


def mobilenet_v3_small() -> tuple[Any, ...]:
    """Return MobileNet-V3-small and an image."""
    return _of_torchvision("mobilenet_v3_small")


def mobilenet_v3_large() -> tuple[Any, ...]:
    """Return MobileNet-V3-large and an image."""
    return _of_torchvision("mobilenet_v3_large")


def shufflenet_v2() -> tuple[Any, ...]:
    """Return ShuffleNet-V2 x1.0, which permutes channels, and an image."""
    return _of_torchvision("shufflenet_v2_x1_0")


def densenet121() -> tuple[Any, ...]:
    """Return DenseNet-121, which joins the results of all earlier layers, and an image."""
    return _of_torchvision("densenet121")


def inception_v3() -> tuple[Any, ...]:
    """Return Inception-v3, of parallel convolutions, and an image of 299 x 299."""
    return _of_torchvision("inception_v3", 299, aux_logits=False, init_weights=False)


def regnet_y() -> tuple[Any, ...]:
    """Return RegNet-Y 800MF, of grouped convolutions with squeeze and excitation, and an image."""
    return _of_torchvision("regnet_y_800mf")


def efficientnet_v2_s() -> tuple[Any, ...]:
    """Return EfficientNet-V2-S and an image."""
    return _of_torchvision("efficientnet_v2_s")


def _of_torchvision(name: str, size: int = 224, **options: Any) -> tuple[Any, ...]:
    """Return a network of ``torchvision`` and an image."""
    import torchvision

    return torchvision.models.get_model(name, weights=None, **options), image(size)
