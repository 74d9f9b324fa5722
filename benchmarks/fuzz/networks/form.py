"""The layout of a network's images: one or two spatial dims, with channels first or last."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.fuzz.draft import Array
from benchmarks.mlir_text import Value

_LETTERS = {(1, True): "ncw", (1, False): "nwc", (2, True): "nchw", (2, False): "nhwc"}
_FILTERS = {"ncw": "fcw", "nwc": "wcf", "nchw": "fchw", "nhwc": "hwcf"}


@dataclass(frozen=True)
class Form:
    """A layout.

    Attributes:
        spatial: Number of spatial dims: 1 or 2.
        first: Whether channels come before the spatial dims.
    """

    spatial: int = 2
    first: bool = True

    @property
    def channel(self) -> int:
        """The dim of the channels."""
        return 1 if self.first else self.spatial + 1

    @property
    def pixels(self) -> range:
        """The spatial dims."""
        return range(2, self.spatial + 2) if self.first else range(1, self.spatial + 1)

    @property
    def loops(self) -> list[str]:
        """A loop per dim of an image."""
        return [f"d{dim}" for dim in range(self.spatial + 2)]

    @property
    def convolution(self) -> str:
        """Name of the convolution over all channels."""
        letters = _LETTERS[self.spatial, self.first]
        return f"conv_{self.spatial}d_{letters}_{_FILTERS[letters]}"

    @property
    def depthwise(self) -> str:
        """Name of the convolution with a filter per channel."""
        letters = _LETTERS[self.spatial, self.first]
        return f"depthwise_conv_{self.spatial}d_{letters}_{letters[1:]}"

    @property
    def grouped(self) -> str:
        """Name of the convolution in groups, of images with two spatial dims."""
        return "conv_2d_ngchw_gfchw" if self.first else "conv_2d_nhwgc_gfhwc"

    def pooling(self, kind: str) -> str:
        """Name of a pooling, ``max`` or ``sum``."""
        return f"pooling_{_LETTERS[self.spatial, self.first]}_{kind}"

    def shape(self, batch: int, channels: int, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of an image."""
        return (batch, channels, *sizes) if self.first else (batch, *sizes, channels)

    def parts(self, image: Value) -> tuple[int, int, list[int]]:
        """Return batch, channels and spatial sizes of an image."""
        return image.shape[0], image.shape[self.channel], [image.shape[dim] for dim in self.pixels]

    def to_first(self, image: Array) -> Array:
        """Return an image with channels first."""
        return np.moveaxis(image, self.channel, 1)

    def from_first(self, image: Array) -> Array:
        """Return an image with channels first in this layout."""
        return np.moveaxis(image, 1, self.channel)

    def by_channel(self, vector: Array) -> Array:
        """Return an element per channel in a shape that is broadcast to an image."""
        return vector.reshape(self.shape(1, vector.size, [1] * self.spatial))

    def around(self, sides: Sequence[int]) -> list[int]:
        """Return a number per dim of an image, given those of the spatial dims; 0 for the others."""
        return list(self.shape(0, 0, sides))
