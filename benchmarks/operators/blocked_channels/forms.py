"""A convolution as a program of one op in each layout, and how numbers are put into the layout and taken out of it.

Dims have a letter each: ``n`` images, ``h`` and ``w`` pixels of the result, or of the image that it reads there, ``p``
and ``q`` taps of the window, ``i`` and ``o`` blocks of the image's channels and of filters, ``c`` and ``f`` channels
and filters of a block, or all of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.operators.blocked_channels.convolutions import Convolution
from benchmarks.operators.shape_programs import MULTIPLY_ADD, Builder
from mlir_sched.program.rewrites.products.packed_product import BLOCKS, MIN_ROWS, MIN_WEIGHTS, MIN_WINDOW_BYTES
from mlir_sched.tensors.element_types import Array

LAST, PACKED, BLOCKED = "channels last", "channels last, packed weights", "blocked channels"
"""The layouts: NHWC with weights HWCF, the same with weights in blocks of filters, and NCHWc with weights FCHWcf."""
LEAST_BLOCK = 8
"""Channels of the smallest block: a vector register of 256 bits. Fewer channels, as those of colours, are one block."""
BYTES = 4
"""Bytes of an element."""


@dataclass(frozen=True)
class Form:
    """A convolution in a layout.

    Attributes:
        text: A program of the convolution, whose inputs are image and weights.
        operands: Returns its inputs, given those with channels last.
        result: Returns the result with channels last, given its own.
    """

    text: str
    operands: Callable[[Array, Array], tuple[Array, Array]]
    result: Callable[[Array], Array]


def forms_of(convolution: Convolution, widest: int) -> dict[str, Form]:
    """Return a convolution in each layout; without packed weights where the rewrite of that name would not pack them.

    Args:
        widest: Channels of the largest block, at least :data:`LEAST_BLOCK`.
    """
    forms = {LAST: channels_last(convolution)}
    if (width := packed_width(convolution)) is not None:
        forms[PACKED] = packed(convolution, width)
    return forms | {BLOCKED: blocked(convolution, widest)}


def channels_last(convolution: Convolution) -> Form:
    """Return a convolution with channels last, as linalg's named op."""
    one, b = convolution, Builder()
    op = "depthwise_conv_2d_nhwc_hwc" if one.depthwise else "conv_2d_nhwc_hwcf"
    image = b.argument(one.batch, *one.image, one.channels)
    taps = b.argument(*one.window, one.channels, *([] if one.depthwise else [one.filters]))
    made = b.convolution(op, image, taps, stride=one.strides, dilation=one.dilations)
    return Form(b.program(made), lambda image, taps: (image, taps), lambda result: result)


def packed_width(convolution: Convolution) -> int | None:
    """Return the filters of a block of packed weights; None for weights that ``packed_weights`` leaves as they are."""
    one = convolution
    width = next((each for each in BLOCKS if one.filters % each == 0), one.filters)
    weights = one.window[0] * one.window[1] * one.channels * one.filters
    enough = weights >= MIN_WEIGHTS if one.window == (1, 1) else weights * BYTES > MIN_WINDOW_BYTES
    rows = one.batch * one.pixels[0] * one.pixels[1]
    return width if enough and rows >= MIN_ROWS and width < one.filters and not one.depthwise else None


def packed(convolution: Convolution, width: int) -> Form:
    """Return a convolution with channels last and weights in blocks of filters, as ``packed_weights`` stores them."""
    one = convolution
    window = "pq" if one.has_window else ""
    sizes = _sizes(one) | {"c": one.channels, "o": one.filters // width, "f": width}

    def operands(image: Array, taps: Array) -> tuple[Array, Array]:
        return image, _ordered(in_blocks(taps, 3, width), "pqcof", f"o{window}cf")

    def result(made: Array) -> Array:
        return made.reshape(*made.shape[:3], one.filters)

    return Form(_program(one, ("nhwc", f"o{window}cf", "nhwof"), sizes), operands, result)


def blocked(convolution: Convolution, widest: int) -> Form:
    """Return a convolution with blocked channels, padded with zeros to whole blocks."""
    one = convolution
    width, filters = block_of(one.channels, widest), block_of(one.filters, widest)
    window = "pq" if one.has_window or one.depthwise else ""
    blocks = {"o": -(-one.filters // filters), "f": filters}
    image_dims, tap_dims = ("nohwf", f"o{window}f") if one.depthwise else ("nihwc", f"oi{window}cf")
    if not one.depthwise:
        blocks |= {"i": -(-one.channels // width), "c": width}

    def operands(image: Array, taps: Array) -> tuple[Array, Array]:
        split_image = in_blocks(image, 3, width)
        if one.depthwise:
            return _ordered(split_image, "nhwof", image_dims), _ordered(in_blocks(taps, 2, width), "pqof", tap_dims)
        split_taps = in_blocks(in_blocks(taps, 3, filters), 2, width)
        return _ordered(split_image, "nhwic", image_dims), _ordered(split_taps, "pqicof", tap_dims)

    def result(made: Array) -> Array:
        whole = _ordered(made, "nohwf", "nhwof")
        return whole.reshape(*whole.shape[:3], -1)[..., : one.filters]

    return Form(_program(one, (image_dims, tap_dims, "nohwf"), _sizes(one) | blocks), operands, result)


def block_of(channels: int, widest: int) -> int:
    """Return the channels of a block: of the widest, its half and so on, the one that needs least padding.

    Of several the widest is returned; for fewer channels than :data:`LEAST_BLOCK` all of them.
    """
    if channels < LEAST_BLOCK:
        return channels
    widths = [widest]
    while widths[-1] >= 2 * LEAST_BLOCK:
        widths.append(widths[-1] // 2)
    return min(widths, key=lambda width: (-channels % width, -width))


def in_blocks(array: Array, dim: int, width: int) -> Array:
    """Return an array with a dim split into blocks, the last one filled with zeros."""
    missing = [(0, -size % width if place == dim else 0) for place, size in enumerate(array.shape)]
    whole = np.pad(array, missing)
    return whole.reshape(*array.shape[:dim], -1, width, *array.shape[dim + 1 :])


def _ordered(array: Array, dims: str, wanted: str) -> Array:
    """Return an array with its dims in another order; those that are not wanted have one element."""
    order = [dims.index(dim) for dim in wanted]
    dropped = [place for place in range(len(dims)) if place not in order]
    moved = array.transpose(*dropped, *order)
    return np.ascontiguousarray(moved.reshape(moved.shape[len(dropped) :]))


def _sizes(convolution: Convolution) -> dict[str, int]:
    """Return the sizes of the dims that are alike in all layouts."""
    return dict(zip("nhwpq", (convolution.batch, *convolution.pixels, *convolution.window), strict=True))


def _program(convolution: Convolution, dims: tuple[str, str, str], sizes: Mapping[str, int]) -> str:
    """Return a program that sums products of an image and weights, as ``einsum`` does, over the dims the result lacks.

    Args:
        dims: Those of image, weights and result, in their order.
        sizes: Of every dim.
    """
    b, (image_dims, tap_dims, result_dims) = Builder(), dims
    places = {dim: dim for dim in sizes}
    if "p" in tap_dims:
        steps = zip("hw", convolution.strides, "pq", convolution.dilations, strict=True)
        places |= {dim: f"{dim} * {stride} + {tap} * {dilation}" for dim, stride, tap, dilation in steps}
    read = {**sizes, **dict(zip("hw", convolution.image, strict=True))}
    image = b.argument(*(read[dim] for dim in image_dims))
    taps = b.argument(*(sizes[dim] for dim in tap_dims))
    loops = [*result_dims, *(dim for dim in tap_dims if dim not in result_dims)]
    made = b.generic(
        ", ".join(loops),
        "".join("p" if loop in result_dims else "r" for loop in loops),
        [(image, ", ".join(places[dim] for dim in image_dims)), (taps, ", ".join(tap_dims))],
        (b.filled([sizes[dim] for dim in result_dims], "f32"), ", ".join(result_dims)),
        MULTIPLY_ADD,
    )
    return b.program(made)
