"""One spatial dimension of a transposed convolution: which tap of the filter carries which pixel to which result."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True)
class Axis:
    """One spatial dimension of a transposed convolution.

    ``result[o]`` sums ``image[i] * filter[t]`` over all ``i`` and ``t`` with ``o = stride * i + k(t) - crop``.

    Attributes:
        pixels: Size of the image.
        taps: Size of the filter.
        results: Size of the result.
        stride: Results from one pixel to the next: one more than the zeros inserted between two pixels.
        crop: Results left out at the low end; negative when zeros are added there.
        mirrored: Whether ``k(t)`` is ``taps - 1 - t``, else it is ``t``. True for a filter that is stored in the order
            in which the convolution over the image with inserted zeros reads it.
    """

    pixels: int
    taps: int
    results: int
    stride: int
    crop: int
    mirrored: bool

    def shift(self, tap: int) -> int:
        """Return ``k`` of a tap."""
        return self.taps - 1 - tap if self.mirrored else tap

    def pixels_of(self, tap: int) -> range:
        """Return the pixels that a tap carries to a result that is kept."""
        first = -(-(self.crop - self.shift(tap)) // self.stride)
        end = (self.results - 1 + self.crop - self.shift(tap)) // self.stride + 1
        return range(max(0, first), max(0, first, min(self.pixels, end)))

    def whole(self) -> Block:
        """Return all taps with all pixels."""
        return Block(range(self.taps), range(self.pixels))

    def blocks(self) -> list[Block]:
        """Return the taps as runs of taps with the same pixels; taps without pixels are left out."""
        runs = groupby(range(self.taps), key=self.pixels_of)
        blocks = [Block(range((found := list(taps))[0], found[-1] + 1), pixels) for pixels, taps in runs]
        return [block for block in blocks if block.pixels]


@dataclass(frozen=True)
class Block:
    """A run of taps and a run of pixels of one dimension, every tap to be multiplied with every pixel."""

    taps: range
    pixels: range
