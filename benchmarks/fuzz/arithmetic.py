"""What convolutions and poolings compute, on images with channels first: batch, channels, and the spatial dims."""

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from benchmarks.fuzz.draft import Array


def results(size: int, taps: int, stride: int, dilation: int) -> int:
    """Return how many results windows of so many taps have along a dim; 0 or less where no window fits."""
    return (size - (taps - 1) * dilation - 1) // stride + 1


def convolution(image: Array, taps: Array, strides: Sequence[int], dilations: Sequence[int]) -> Array:
    """Return a convolution in groups.

    Args:
        taps: Dims are groups, filters of a group, channels of a group, and the spatial dims.
        strides, dilations: Per spatial dim.
    """
    groups, filters, channels, *window = taps.shape
    grouped = image.reshape(len(image), groups, channels, *image.shape[2:])
    met = np.moveaxis(_windows(grouped, window, strides, dilations), 2, 2 + len(window))
    place = met.shape[2 : 2 + len(window)]
    patches = met.reshape(len(image), groups, prod(place), -1)
    sums = taps.reshape(groups, filters, -1) @ patches.swapaxes(2, 3)
    return sums.reshape(len(image), groups * filters, *place)


def taps_by_group(taps: Array, *, depthwise: bool, first: bool) -> Array:
    """Return taps as :func:`convolution` takes them.

    Args:
        taps: As a named op stores them.
        depthwise: Whether each channel has a filter of its own; else every filter has taps of all channels.
        first: Whether the dims of channels and filters come first.
    """
    if depthwise:
        return (taps if first else np.moveaxis(taps, -1, 0))[:, None, None]
    return (taps if first else np.moveaxis(taps, (-1, -2), (0, 1)))[None]


def pooling(
    combine: np.ufunc, image: Array, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Array:
    """Return what a function makes of the pixels of every window."""
    met = _windows(image, window, strides, dilations)
    return np.asarray(combine.reduce(met, axis=tuple(range(-len(window), 0))))


def dilated(image: Array, strides: Sequence[int], low: Sequence[int], sizes: Sequence[int]) -> Array:
    """Return zeros of the given spatial sizes, with the pixels of an image in it.

    Args:
        strides: Places from one pixel to the next, per spatial dim.
        low: The place of the first pixel.
        sizes: Sizes of the result.
    """
    made = np.zeros((*image.shape[:2], *sizes))
    pixels = zip(image.shape[2:], strides, low, strict=True)
    made[:, :, *(slice(first, first + (size - 1) * stride + 1, stride) for size, stride, first in pixels)] = image
    return made


def _windows(image: Array, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Array:
    """Return the pixels that every window meets: the last dims are those of the results, and then of the taps."""
    reach = [(taps - 1) * apart + 1 for taps, apart in zip(window, dilations, strict=True)]
    every = sliding_window_view(image, reach, tuple(range(-len(window), 0)))
    others = [slice(None)] * (image.ndim - len(window))
    return every[*others, *(slice(None, None, step) for step in (*strides, *dilations))]
