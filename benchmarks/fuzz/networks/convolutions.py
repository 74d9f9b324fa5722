"""Layers of random networks that convolve or pool an image, and those around a convolution."""

from collections.abc import Callable, Sequence
from math import prod, sqrt

import numpy as np

from benchmarks.fuzz.arithmetic import convolution, dilated, pooling, results, taps_by_group
from benchmarks.fuzz.draft import Array
from benchmarks.fuzz.networks.network import KIND, Network
from benchmarks.mlir_text import Value, window_attributes

CHANNELS = (3, 6, 8, 16, 24, 32, 32, 32, 48, 64)
"""Channels of images: vectors fit, or leave a rest; 32 and more are what Winograd's algorithm is for."""


def convolved(net: Network, image: Value) -> Value | None:
    """Convolve an image: all channels, in groups or each alone; any window, stride, dilation and padding."""
    _, channels, sizes = net.form.parts(image)
    groups = net.any_of([1, 1, 1, 1, channels, 2 if net.form.spatial == 2 else channels])
    filters = channels if groups == channels else net.any_of(CHANNELS)
    if channels % groups or filters % groups:
        return None
    window, strides = _window(net), _strides(net)
    dilations = [net.any_of([1, 1, 1, 2]) if taps > 1 else 1 for taps in window]
    reach = [(taps - 1) * apart for taps, apart in zip(window, dilations, strict=True)]
    padded = net.padded(image, *_sides(net, reach))
    _, _, sizes = net.form.parts(padded)
    if min(results(*each) for each in zip(sizes, window, strides, dilations, strict=True)) < 1:
        return None
    if padded is not image and net.rng.random() < 0.3:
        net.offered(padded)
    made = net.offered(convolution_of(net, padded, filters, window, strides, dilations, groups))
    return finished_layer(net, made)


def pixels_read(net: Network, image: Value) -> Value | None:
    """Convolve an image with one tap and a stride above 1, as where residual blocks become smaller."""
    _, _, sizes = net.form.parts(image)
    if min(sizes) < 2:
        return None
    strides, ones = _per_dim(net, [2, 2, 3]), [1] * net.form.spatial
    return finished_layer(
        net, net.offered(convolution_of(net, image, net.any_of(CHANNELS), ones, strides, ones, groups=1))
    )


def residual(net: Network, image: Value) -> Value | None:
    """Add an image to what one or two convolutions make of it."""
    _, channels, _ = net.form.parts(image)
    made, three, ones = image, [3] * net.form.spatial, [1] * net.form.spatial
    for _ in range(net.any_of([1, 2])):
        groups = net.any_of([1, 1, channels])
        padded = net.padded(made, ones, ones)
        made = finished_layer(net, convolution_of(net, padded, channels, three, ones, ones, groups))
    added = net.offered(net.both(made, image, "addf", np.add))
    return activated(net, added)


def enlarged_by_taps(net: Network, image: Value) -> Value | None:
    """Convolve an image with zeros between its pixels: a transposed convolution."""
    batch, channels, sizes = net.form.parts(image)
    if max(sizes) > 10:
        return None
    taps, strides = _per_dim(net, [2, 3]), _per_dim(net, [2])
    low = [size - 1 - net.any_of([0, 1]) for size in taps]
    spread = [
        (size - 1) * stride + 1 + first + count - 1
        for size, stride, first, count in zip(sizes, strides, low, taps, strict=True)
    ]
    zeros = net.filled(net.form.shape(batch, channels, spread), KIND)

    def compute(x: Array) -> Array:
        return net.form.from_first(dilated(net.form.to_first(x), strides, low, spread))

    made = net.made(zeros.shape, KIND, compute, image, roundings=0)
    offsets = net.form.around(low)
    steps = list(net.form.shape(1, 1, strides))
    net.line(
        f"%{made.name} = tensor.insert_slice %{image.name} into %{zeros.name}{offsets} {list(image.shape)} {steps} "
        f": {image.type} into {made.type}"
    )
    ones = [1] * net.form.spatial
    return finished_layer(net, net.offered(convolution_of(net, made, net.any_of(CHANNELS), taps, ones, ones, groups=1)))


def pooled(net: Network, image: Value) -> Value | None:
    """Take the largest pixel of windows, or their mean, of an image that is padded on any side."""
    return pooling_of(net, image, largest=net.rng.random() < 0.6)


def pooling_of(net: Network, image: Value, *, largest: bool) -> Value | None:
    """Pool an image; where no window fits, return None.

    Args:
        largest: Whether the largest pixels are taken, of an image that is padded with minus infinity or zeros; else
            the mean, zeros of the padding included.
    """
    window, strides, dilations = _per_dim(net, [2, 3]), _per_dim(net, [1, 2, 3]), [1] * net.form.spatial
    if largest and net.rng.random() < 0.2:
        dilations = _per_dim(net, [1, 2])
    around = -np.inf if largest and net.rng.random() < 0.7 else 0.0
    padded = net.padded(image, *_sides(net, [taps - 1 for taps in window]), around)
    batch, channels, sizes = net.form.parts(padded)
    counts = [results(*each) for each in zip(sizes, window, strides, dilations, strict=True)]
    if min(counts) < 1:
        return None
    shape, form = net.form.shape(batch, channels, counts), net.form
    combine = np.maximum if largest else np.add

    def compute(x: Array) -> Array:
        return form.from_first(pooling(combine, form.to_first(x), window, strides, dilations))

    taps, start = net.empty(window, KIND), net.filled(shape, KIND, -np.inf if largest else 0.0)
    made = net.made(shape, KIND, compute, padded, roundings=0.0 if largest else sqrt(prod(window)) + 1)
    name = form.pooling("max" if largest else "sum")
    net.linalg(made, f"{name} {window_attributes(strides, dilations)}", [padded, taps], start)
    if not np.isfinite(net.arrays[made.name]).all():
        return None
    if largest:
        return net.offered(made)
    number = float(prod(window))
    body = [f"%n = arith.constant {number}", "%r = arith.divf %x, %n"]
    return net.offered(net.each(made, body, lambda x: x / number))


def finished_layer(net: Network, image: Value) -> Value:
    """Normalise an image, or not, and apply a function to its elements, or not."""
    if net.rng.random() < 0.5:
        image = net.offered(normalised(net, image))
    return activated(net, image)


def normalised(net: Network, image: Value) -> Value:
    """Return an image after batch normalisation: a mean subtracted, two scales, and a shift, by channel vectors."""
    form, channels = net.form, net.form.parts(image)[1]
    vectors = net.rng.random() < 0.5
    shape, ones = ((channels,), []) if vectors else ((channels, 1, 1), ["0", "0"])
    index = [f"d{form.channel}", *ones]
    for operation, offset in (("subf", 0.0), ("mulf", 1.0), ("mulf", 1.0), ("addf", 0.0)):
        compute = {"subf": np.subtract, "mulf": np.multiply, "addf": np.add}[operation]
        vector = net.weights(shape, 4, offset)

        def by_channel(x: Array, y: Array, compute: Callable[..., Array] = compute) -> Array:
            return compute(x, form.by_channel(y))

        image = net.mapped([image, vector], [form.loops, index], [f"%r = arith.{operation} %x, %y"], by_channel)
    return image


def activated(net: Network, image: Value) -> Value:
    """Return a function of the elements of an image, or the image."""
    kind = net.any_of(["", "", "relu", "relu", "clipped", "swish", "tanh"])
    if kind == "relu":
        body = ["%t = arith.constant 0.0", "%r = arith.maximumf %x, %t"]
        return net.offered(net.each(image, body, lambda x: np.maximum(x, 0)))
    if kind == "clipped":
        body = [
            "%t = arith.constant 0.0", "%m = arith.maximumf %x, %t", "%six = arith.constant 6.0",
            "%r = arith.minimumf %m, %six",
        ]  # fmt: skip
        return net.offered(net.each(image, body, lambda x: np.clip(x, 0, 6)))
    if kind == "swish":
        return net.offered(net.both(image, sigmoid(net, image), "mulf", np.multiply))
    return net.offered(net.each(image, ["%r = math.tanh %x"], np.tanh)) if kind == "tanh" else image


def sigmoid(net: Network, value: Value) -> Value:
    """Return the logistic function of the elements of a value."""
    body = [
        "%m = arith.negf %x", "%e = math.exp %m", "%one = arith.constant 1.0", "%s = arith.addf %e, %one",
        "%r = arith.divf %one, %s",
    ]  # fmt: skip
    return net.each(value, body, lambda x: 1 / (1 + np.exp(-x)))


def convolution_of(
    net: Network,
    image: Value,
    filters: int,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    groups: int,
) -> Value:
    """Return a convolution, without padding, of an image that it fits.

    Args:
        filters: Channels of the result; as many as the image has where every channel is a group.
        window, strides, dilations: Per spatial dim.
        groups: 1, as many as channels, or in two dimensions a number that divides channels and filters.
    """
    batch, channels, sizes = net.form.parts(image)
    counts = [results(*each) for each in zip(sizes, window, strides, dilations, strict=True)]
    result, form, terms = net.form.shape(batch, filters, counts), net.form, channels // groups * prod(window)
    depthwise = groups == channels == filters and groups > 1
    if groups > 1 and not depthwise:
        return _grouped(net, image, filters, window, strides, dilations, groups)
    if depthwise:
        shape = (channels, *window) if form.first else (*window, channels)
    else:
        shape = (filters, channels, *window) if form.first else (*window, channels, filters)
    taps = net.weights(shape, terms)
    start, bias = _start(net, result, filters)

    def compute(x: Array, w: Array, *added: Array) -> Array:
        grouped = taps_by_group(w, depthwise=depthwise, first=form.first)
        sums = form.from_first(convolution(form.to_first(x), grouped, strides, dilations))
        return sums + sum(added)

    made = net.made(result, KIND, compute, image, taps, *bias, roundings=sqrt(terms) + 2)
    name = form.depthwise if depthwise else form.convolution
    net.linalg(made, f"{name} {window_attributes(strides, dilations)}", [image, taps], start)
    return made


def _grouped(
    net: Network,
    image: Value,
    filters: int,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    groups: int,
) -> Value:
    """Return a convolution in groups of an image with two spatial dims, whose channels are split into groups."""
    form, (batch, channels, sizes) = net.form, net.form.parts(image)
    counts = [results(*each) for each in zip(sizes, window, strides, dilations, strict=True)]
    inner, each = channels // groups, filters // groups
    dims = [[0], [1, 2], [3], [4]] if form.first else [[0], [1], [2], [3, 4]]
    split = (batch, groups, inner, *sizes) if form.first else (batch, *sizes, groups, inner)
    parts = net.reshaped(image, split, dims)
    taps = net.weights((groups, each, inner, *window) if form.first else (groups, each, *window, inner), inner * 9)
    result = (batch, groups, each, *counts) if form.first else (batch, *counts, groups, each)
    start = net.filled(result, KIND)

    def compute(x: Array, w: Array) -> Array:
        whole = form.to_first(x.reshape(form.shape(batch, channels, sizes)))
        sums = convolution(whole, w if form.first else np.moveaxis(w, -1, 2), strides, dilations)
        return form.from_first(sums).reshape(result)

    made = net.made(result, KIND, compute, parts, taps, roundings=sqrt(inner * prod(window)) + 2)
    net.linalg(made, f"{form.grouped} {window_attributes(strides, dilations)}", [parts, taps], start)
    return net.reshaped(made, form.shape(batch, filters, counts), dims)


def _start(net: Network, shape: Sequence[int], filters: int) -> tuple[Value, list[Value]]:
    """Return what a convolution starts with, and what that adds: zeros, or the bias of every channel."""
    if net.rng.random() < 0.6:
        return net.filled(shape, KIND), []
    repeated = net.repeated(net.weights((filters,), 4), shape)
    return repeated, [repeated]


def _per_dim(net: Network, options: Sequence[int]) -> list[int]:
    """Return one of some numbers per spatial dim, mostly the same for all."""
    first = net.any_of(options)
    return [first if net.rng.random() < 0.75 else net.any_of(options) for _ in range(net.form.spatial)]


def _window(net: Network) -> list[int]:
    return _per_dim(net, [1, 1, 2, 3, 3, 3, 5])


def _strides(net: Network) -> list[int]:
    return _per_dim(net, [1, 1, 1, 2, 2, 3])


def _sides(net: Network, reach: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return widths of padding in front and behind: as for results of the image's size, any, or none.

    Args:
        reach: Pixels from the first tap of a window to the last one, per dim, which no width exceeds.
    """
    kind = net.any_of(["same", "same", "any", "none"])
    if kind == "same":
        return [width // 2 for width in reach], [width - width // 2 for width in reach]
    if kind == "any":
        low, high = ([int(net.rng.integers(0, width + 1)) for width in reach] for _ in range(2))
        return low, high
    return [0] * len(reach), [0] * len(reach)
