"""What the ops of networks compute, on images with channels first: batch, channels, and the spatial dims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from benchmarks.fuzz.draft import Array


def results(size: int, taps: int, stride: int, dilation: int) -> int:
    """Return how many results windows of so many taps have along a dim; 0 or less where no window fits."""
    return (size - (taps - 1) * dilation - 1) // stride + 1


def convolution(image: Array, taps: Array, strides: Sequence[int], dilations: Sequence[int]) -> Array:
    """Return a convolution in groups.

    Args:
        image: As of the module.
        taps: Dims are groups, filters of a group, channels of a group, and the spatial dims.
        strides, dilations: Per spatial dim.
    """
    groups, filters, channels, *window = taps.shape
    grouped = image.reshape(len(image), groups, channels, *image.shape[2:])
    pieces = _pieces(grouped, window, strides, dilations)
    sums: Array = reduce(np.add, (np.einsum("ngc...,gfc->ngf...", piece, taps[_last(tap)]) for tap, piece in pieces))
    return sums.reshape(len(image), groups * filters, *sums.shape[3:])


def pooling(
    combine: Callable[[Array, Array], Array],
    image: Array,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Array:
    """Return what a function makes of the pixels of every window."""
    return reduce(combine, (piece for _, piece in _pieces(image, window, strides, dilations)))


def dilated(image: Array, strides: Sequence[int], low: Sequence[int], sizes: Sequence[int]) -> Array:
    """Return zeros of the given spatial sizes, with the pixels of an image in it.

    Args:
        image: As of the module.
        strides: Places from one pixel to the next, per spatial dim.
        low: The place of the first pixel.
        sizes: Sizes of the result.
    """
    made = np.zeros((*image.shape[:2], *sizes))
    pixels = zip(image.shape[2:], strides, low, strict=True)
    made[_last(slice(first, first + (size - 1) * stride + 1, stride) for size, stride, first in pixels)] = image
    return made


def _pieces(
    image: Array, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Yield every tap of a window with the pixels that it meets; the last dims of the image are spatial."""
    spatial = image.shape[-len(window) :]
    counts = [results(*each) for each in zip(spatial, window, strides, dilations, strict=True)]
    for tap in product(*map(range, window)):
        along = zip(tap, counts, strides, dilations, strict=True)
        places = (slice(at * apart, at * apart + (count - 1) * step + 1, step) for at, count, step, apart in along)
        yield tap, image[_last(places)]


def _last(places: Iterable[int | slice]) -> Any:
    """Return an index into the last dims of an array."""
    return (..., *places)
