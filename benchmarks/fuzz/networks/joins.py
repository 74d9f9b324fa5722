"""Layers of random networks that join, split and move images."""

from math import prod

import numpy as np

from benchmarks.fuzz.networks.network import KIND, Network
from benchmarks.mlir_text import Value, generic_over


def combined(net: Network, image: Value) -> Value | None:
    """Add, subtract, multiply or take the larger of an image and another one of its shape."""
    others = [other for other in net.images if other.shape == image.shape and other != image]
    if not others:
        return None
    operation = net.any_of(["addf", "addf", "addf", "subf", "mulf", "maximumf"])
    compute = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "maximumf": np.maximum}[operation]
    return net.offered(net.both(image, net.any_of(others), operation, compute))


def concatenated(net: Network, image: Value) -> Value | None:
    """Join an image along the channels with one or two others of its size."""
    batch, _, sizes = net.form.parts(image)
    others = [
        each
        for each in net.images
        if each != image and (net.form.parts(each)[0], net.form.parts(each)[2]) == (batch, sizes)
    ]
    if not others:
        return None
    parts = [image, *(net.any_of(others) for _ in range(net.any_of([1, 1, 2])))]
    parts = [parts[place] for place in net.rng.permutation(len(parts))]
    return net.offered(net.concat(parts, net.form.channel))


def shuffled(net: Network, image: Value) -> Value | None:
    """Interleave groups of channels: split, transposed, and made one dim again."""
    form, (batch, channels, sizes) = net.form, net.form.parts(image)
    groups = net.any_of([2, 2, 3, 4])
    if channels % groups:
        return None
    inner, rank = channels // groups, form.spatial
    if form.first:
        dims, split = [[0], [1, 2], *([dim] for dim in range(3, rank + 3))], (batch, groups, inner, *sizes)
        order = [0, 2, 1, *range(3, rank + 3)]
    else:
        dims, split = [*([dim] for dim in range(rank + 1)), [rank + 1, rank + 2]], (batch, *sizes, groups, inner)
        order = [*range(rank + 1), rank + 2, rank + 1]
    return net.offered(net.reshaped(net.transpose(net.reshaped(image, split, dims), order), image.shape, dims))


def split(net: Network, image: Value) -> Value | None:
    """Split the channels of an image in two; both parts may be read."""
    form, (batch, channels, sizes) = net.form, net.form.parts(image)
    if channels < 2:
        return None
    at = channels // 2 if net.rng.random() < 0.6 else int(net.rng.integers(1, channels))
    ones, zeros = [1] * len(image.shape), [0] * form.spatial
    parts = [
        net.extract_slice(image, form.shape(0, low, zeros), form.shape(batch, high - low, sizes), ones)
        for low, high in ((0, at), (at, channels))
    ]
    for part in parts if net.rng.random() < 0.5 else parts[::-1]:
        net.offered(part)
    return net.images[-1]


def cropped(net: Network, image: Value) -> Value | None:
    """Take a part of the pixels, perhaps every second one."""
    form, (batch, channels, sizes) = net.form, net.form.parts(image)
    if min(sizes) < 4:
        return None
    step = net.any_of([1, 2])
    low = [int(net.rng.integers(0, 2)) for _ in sizes]
    counts = [(size - first - 1) // step for size, first in zip(sizes, low, strict=True)]
    steps = form.shape(1, 1, [step] * form.spatial)
    return net.offered(net.extract_slice(image, form.around(low), form.shape(batch, channels, counts), steps))


def rearranged(net: Network, image: Value) -> Value | None:
    """Read channels in another order, from a tensor of indices (``torch.index_select``)."""
    form, (_, channels, _) = net.form, net.form.parts(image)
    order = [int(each) for each in net.rng.permutation(channels)]
    start, indices = net.empty(image.shape, KIND), net.name()
    made = net.made(image.shape, KIND, lambda x: np.take(x, order, form.channel), image, roundings=0)
    net.line(f"%{indices} = arith.constant dense<{order}> : tensor<{channels}xi64>")
    dims = range(len(image.shape))
    places = ["%at" if dim == form.channel else f"%i{dim}" for dim in dims]
    net.region(
        f"%{made.name} = {generic_over(form.loops, [f'd{form.channel}', ', '.join(form.loops)], 'p' * len(dims))} "
        f"ins(%{indices} : tensor<{channels}xi64>) outs(%{start.name} : {start.type})",
        f"%c: i64, %o: {KIND}",
        [
            "%at = arith.index_cast %c : i64 to index",
            *(f"%i{dim} = linalg.index {dim} : index" for dim in dims if dim != form.channel),
            f"%r = tensor.extract %{image.name}[{', '.join(places)}] : {image.type}",
            f"linalg.yield %r : {KIND}",
        ],
        f"-> {made.type}",
    )
    return net.offered(made)


def repeated_pixels(net: Network, image: Value) -> Value | None:
    """Make an image twice as large by a broadcast: every pixel becomes two per dim."""
    form, (batch, channels, sizes) = net.form, net.form.parts(image)
    if prod(sizes) > 81:
        return None
    shape, dims = list[int](), list[list[int]]()
    for dim, size in enumerate(image.shape):
        added = [size, 2] if dim in form.pixels else [size]
        dims.append([len(shape) + number for number in range(len(added))])
        shape += added
    new = [group[1] for group in dims if len(group) > 1]

    start = net.empty(shape, KIND)
    made = net.made(shape, KIND, lambda x: np.broadcast_to(np.expand_dims(x, new), shape), image, roundings=0)
    net.linalg(made, "broadcast", [image], start, f"dimensions = {new}")
    return net.offered(net.reshaped(made, form.shape(batch, channels, [2 * size for size in sizes]), dims))


def gathered_pixels(net: Network, image: Value) -> Value | None:
    """Make an image with channels first twice as large as PyTorch's exporter writes it: by tensors of indices."""
    form, (batch, channels, sizes) = net.form, net.form.parts(image)
    if not form.first or form.spatial != 2 or prod(sizes) > 81:
        return None
    large = [2 * size for size in sizes]
    numbers = [_counted(net, channels, 1), *(_counted(net, size, 2) for size in large)]
    places = [net.name() for _ in range(2)]
    net.line(
        f"%{places[0]} = tensor.expand_shape %{numbers[0]} [[0, 1, 2]] output_shape [{channels}, 1, 1] "
        f": tensor<{channels}xi64> into tensor<{channels}x1x1xi64>"
    )
    net.line(
        f"%{places[1]} = tensor.expand_shape %{numbers[1]} [[0, 1]] output_shape [{large[0]}, 1] "
        f": tensor<{large[0]}xi64> into tensor<{large[0]}x1xi64>"
    )
    start = net.empty((batch, channels, *large), KIND)
    made = net.made(start.shape, KIND, lambda x: x.repeat(2, 2).repeat(2, 3), image, roundings=0)
    wrapped = [line for name, size in zip("cyx", (channels, *sizes), strict=True) for line in _wrapped(name, size)]
    net.region(
        f"%{made.name} = {generic_over(form.loops, ['d1, 0, 0', 'd2, 0', 'd3', ', '.join(form.loops)], 'pppp')} "
        f"ins(%{places[0]}, %{places[1]}, %{numbers[2]} : tensor<{channels}x1x1xi64>, tensor<{large[0]}x1xi64>, "
        f"tensor<{large[1]}xi64>) outs(%{start.name} : {start.type})",
        f"%c: i64, %y: i64, %x: i64, %o: {KIND}",
        [
            "%zero = arith.constant 0 : i64",
            "%n_at = linalg.index 0 : index",
            *wrapped,
            f"%r = tensor.extract %{image.name}[%n_at, %c_at, %y_at, %x_at] : {image.type}",
            f"linalg.yield %r : {KIND}",
        ],
        f"-> {made.type}",
    )
    return net.offered(made)


def _wrapped(name: str, size: int) -> list[str]:
    """Return the operations that make a place of an index, which counts from the end where it is negative."""
    return [
        f"%{name}_size = arith.constant {size} : i64",
        f"%{name}_below = arith.cmpi slt, %{name}, %zero : i64",
        f"%{name}_end = arith.addi %{name}, %{name}_size : i64",
        f"%{name}_in = arith.select %{name}_below, %{name}_end, %{name} : i64",
        f"%{name}_at = arith.index_cast %{name}_in : i64 to index",
    ]


def _counted(net: Network, size: int, divisor: int) -> str:
    """Return the name of a tensor of the numbers 0, 1, 2 and so on, divided and rounded down."""
    empty, counted, divided = net.name(), net.name(), net.name()
    kind, stored = f"tensor<{size}xi64>", "linalg.yield %r : i64"
    net.line(f"%{empty} = tensor.empty() : {kind}")
    net.region(
        f"%{counted} = {generic_over(['d0'], ['d0'], 'p')} outs(%{empty} : {kind})",
        "%o: i64",
        ["%i = linalg.index 0 : index", "%r = arith.index_cast %i : index to i64", stored],
        f"-> {kind}",
    )
    if divisor == 1:
        return counted
    net.region(
        f"%{divided} = {generic_over(['d0'], ['d0', 'd0'], 'p')} ins(%{counted} : {kind}) outs(%{empty} : {kind})",
        "%i: i64, %o: i64",
        [f"%n = arith.constant {divisor} : i64", "%r = arith.divsi %i, %n : i64", stored],
        f"-> {kind}",
    )
    return divided
