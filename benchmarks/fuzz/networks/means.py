"""Layers of random networks that take the mean of all pixels, and the ends of networks."""

from math import prod, sqrt

import numpy as np

from benchmarks.fuzz.draft import Array
from benchmarks.fuzz.networks.convolutions import activated, convolution_of, sigmoid
from benchmarks.fuzz.networks.network import KIND, Network
from benchmarks.mlir_text import Value, generic_over

MOST_ROWS = 1 << 11
"""Most elements of an image that are multiplied with weights: the text of a network has its weights."""


def gated(net: Network, image: Value) -> Value | None:
    """Scale the channels of an image by what two convolutions make of their means (squeeze and excite)."""
    form, (_, channels, _) = net.form, net.form.parts(image)
    ones, few = [1] * form.spatial, max(1, channels // 4)
    mean = mean_of(net, image)
    small = activated(net, convolution_of(net, mean, few, ones, ones, ones, groups=1))
    gate = sigmoid(net, convolution_of(net, small, channels, ones, ones, ones, groups=1))
    index = [f"d{dim}" if dim in (0, form.channel) else "0" for dim in range(len(image.shape))]
    return net.offered(net.mapped([image, gate], [form.loops, index], ["%r = arith.mulf %x, %y"], np.multiply))


def mean_of(net: Network, image: Value) -> Value:
    """Return the mean of all pixels, as an image of one pixel: a sum, or a gather as PyTorch's exporter writes it."""
    form, (batch, _, _) = net.form, net.form.parts(image)
    if form.first and form.spatial == 2 and batch == 1 and net.rng.random() < 0.5:
        return _gathered_mean(net, image)
    if net.rng.random() < 0.5:
        return _mean_with_pixels(net, image)
    mean, (_, channels, _) = mean_vector(net, image), form.parts(image)
    shape = form.shape(batch, channels, [1] * form.spatial)
    rank = len(image.shape)
    groups = [[0], [*range(1, rank)]]
    return net.reshaped(mean, shape, groups)


def mean_vector(net: Network, image: Value) -> Value:
    """Return the mean of all pixels of every channel, without spatial dims."""
    form, (batch, channels, sizes) = net.form, net.form.parts(image)
    loops = [f"d{dim}" for dim in range(len(image.shape))]
    outer, inner = [0, form.channel], list(form.pixels)
    place = {dim: loops[number] for number, dim in enumerate([*outer, *inner])}
    start = net.filled((batch, channels), KIND)
    summed = net.made(start.shape, KIND, lambda x: x.sum(tuple(inner)), image, roundings=sqrt(prod(sizes)) + 1)
    maps = [[place[dim] for dim in range(len(image.shape))], loops[:2]]
    net.generic(summed, start, [image], loops, maps, 2, [f"%r = arith.addf %x, %o : {KIND}"])
    return _divided(net, summed, prod(sizes))


def _mean_with_pixels(net: Network, image: Value) -> Value:
    """Return the mean as an image of one pixel, summed by an op whose result has the spatial dims."""
    form, (batch, channels, sizes) = net.form, net.form.parts(image)
    start = net.filled(form.shape(batch, channels, [1] * form.spatial), KIND)
    inner = tuple(form.pixels)
    summed = net.made(start.shape, KIND, lambda x: x.sum(inner, keepdims=True), image, roundings=sqrt(prod(sizes)) + 1)
    loops = [f"d{dim}" for dim in range(len(image.shape))]
    place = {dim: loops[number] for number, dim in enumerate([0, form.channel, *inner])}
    read = [place[dim] for dim in range(len(image.shape))]
    written = [place[dim] if dim in (0, form.channel) else "0" for dim in range(len(image.shape))]
    net.generic(summed, start, [image], loops, [read, written], 2, [f"%r = arith.addf %x, %o : {KIND}"])
    return _divided(net, summed, prod(sizes))


def _divided(net: Network, value: Value, number: int) -> Value:
    body = [f"%n = arith.constant {float(number)}", "%r = arith.divf %x, %n"]
    return net.each(value, body, lambda x: x / number)


def _gathered_mean(net: Network, image: Value) -> Value:
    """Return the mean by the op into which ``torch.aten.adaptive_avg_pool2d`` to one pixel is lowered."""
    _, channels, rows, columns = image.shape
    zero, first = net.constant(0.0, KIND), net.name()
    count = net.constant(float(rows * columns), KIND)
    height, width, window = net.name(), net.name(), net.name()
    net.line(f"%{first} = arith.constant 0 : index")
    net.line(f"%{height} = arith.constant {rows} : index")
    net.line(f"%{width} = arith.constant {columns} : index")
    net.line(f"%{window} = tensor.empty() : tensor<{rows}x{columns}xi1>")
    ones, start = net.empty((1, 1), KIND), net.filled((1, channels, 1, 1), KIND)
    padded = net.name()
    kind = f"tensor<1x{channels}x{rows + 1}x{columns + 1}x{KIND}>"
    net.region(
        f"%{padded} = tensor.pad %{image.name} low[0, 0, 0, 0] high[0, 0, 1, 1]",
        "%n: index, %c: index, %h: index, %w: index",
        [f"tensor.yield %{zero} : {KIND}"],
        f": {image.type} to {kind}",
    )
    sums, loops = net.name(), [f"d{dim}" for dim in range(6)]
    net.region(
        f"%{sums}:2 = {generic_over(loops, ['d4, d5', 'd0, d1, d2, d3', 'd2, d3'], 'pppprr')} "
        f"ins(%{window} : tensor<{rows}x{columns}xi1>) outs(%{start.name}, %{ones.name} : {start.type}, {ones.type})",
        f"%in: i1, %sum: {KIND}, %one: {KIND}",
        [
            "%channel = linalg.index 1 : index",
            "%row = linalg.index 4 : index",
            "%column = linalg.index 5 : index",
            f"%pixel = tensor.extract %{padded}[%{first}, %channel, %row, %column] : {kind}",
            f"%row_in = arith.cmpi ult, %row, %{height} : index",
            f"%or_zero = arith.select %row_in, %pixel, %{zero} : {KIND}",
            f"%column_in = arith.cmpi ult, %column, %{width} : index",
            f"%term = arith.select %column_in, %or_zero, %{zero} : {KIND}",
            f"%total = arith.addf %term, %sum : {KIND}",
            f"linalg.yield %total, %{count} : {KIND}, {KIND}",
        ],
        f"-> ({start.type}, {ones.type})",
    )

    def compute(x: Array) -> Array:
        return np.asarray(x.mean((2, 3), keepdims=True))

    made = net.made(start.shape, KIND, compute, image, roundings=sqrt(rows * columns) + 2)
    net.region(
        f"%{made.name} = {generic_over(loops[:4], ['d2, d3', 'd0, d1, d2, d3'], 'pppp')} "
        f"ins(%{sums}#1 : {ones.type}) outs(%{sums}#0 : {start.type})",
        f"%number: {KIND}, %sum: {KIND}",
        [f"%r = arith.divf %sum, %number : {KIND}", f"linalg.yield %r : {KIND}"],
        f"-> {made.type}",
    )
    return made


def classified(net: Network, image: Value) -> Value:
    """Return a product of weights and all elements of an image, or the means of its channels, plus a bias."""
    batch = image.shape[0]
    if net.rng.random() < 0.5 or prod(image.shape[1:]) > MOST_ROWS:
        rows = mean_vector(net, image)
    else:
        groups = [[0], [*range(1, len(image.shape))]]
        rows = net.reshaped(image, (batch, prod(image.shape[1:])), groups)
    inner, columns = rows.shape[1], net.any_of([1, 5, 10, 17])
    turned = net.rng.random() < 0.5
    weights = net.weights((columns, inner) if turned else (inner, columns), inner)
    start = net.filled((batch, columns), KIND)
    made = net.made(
        start.shape, KIND, lambda x, w: x @ (w.T if turned else w), rows, weights, roundings=sqrt(inner) + 2
    )
    body = [f"%p = arith.mulf %x, %y : {KIND}", f"%r = arith.addf %o, %p : {KIND}"]
    maps = [["d0", "d2"], ["d1", "d2"] if turned else ["d2", "d1"], ["d0", "d1"]]
    net.generic(made, start, [rows, weights], ["d0", "d1", "d2"], maps, 2, body)
    bias = net.weights((columns,), 4)
    return net.mapped([made, bias], [["d0", "d1"], ["d1"]], ["%r = arith.addf %x, %y"], np.add)
