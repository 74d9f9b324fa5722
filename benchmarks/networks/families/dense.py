"""Networks with results for every place of an image."""

from typing import Any

from benchmarks.networks.modules import image


def unet() -> tuple[Any, ...]:
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


def detector_head() -> tuple[Any, ...]:
    """Return a detector's head and images of 64 channels at three scales: scores and boxes of each scale are results.

    The scales share the weights, and each place has three boxes with scores of 20 classes.
    """
    from torch import nn

    channels, boxes, classes = 64, 3, 20

    def branch(results: int) -> Any:
        layers = [layer for _ in range(2) for layer in (nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU())]
        return nn.Sequential(*layers, nn.Conv2d(channels, boxes * results, 3, padding=1))

    class Head(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.scores, self.boxes = branch(classes), branch(4)

        def forward(self, *scales: Any) -> Any:
            return tuple(result for scale in scales for result in (self.scores(scale).sigmoid(), self.boxes(scale)))

    return Head(), *(image(size, channels) for size in (40, 20, 10))
