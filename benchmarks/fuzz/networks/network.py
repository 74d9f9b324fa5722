"""A random network under construction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from benchmarks.fuzz.draft import Array, Compute, Draft, Value
from benchmarks.fuzz.networks.form import Form
from mlir_sched.runner.checks.rounding import MATH_WEIGHT

KIND = "f32"
"""The type of all elements: rewrites of networks are for this one."""


@dataclass
class Network(Draft):
    """A network so far.

    Attributes:
        form: The layout of its images.
        stores: Whether weights are constants of the program; arguments otherwise.
        images: What further layers may read, the latest last.
    """

    form: Form = field(default_factory=Form)
    stores: bool = True
    images: list[Value] = field(default_factory=list)

    def offered(self, image: Value) -> Value:
        """Return an image that further layers may read."""
        self.images.append(image)
        return image

    def weights(self, shape: Sequence[int], terms: int = 1, offset: float = 0.0) -> Value:
        """Return new weights.

        Args:
            shape: Their shape.
            terms: How many of them a result sums, so that results are about as large as what they are computed from.
            offset: Their mean.
        """
        drawn = self.drawn(Value("", tuple(shape), KIND)) / (1.0 if self.whole else sqrt(terms)) + offset
        if self.stores:
            return self.stored(drawn)
        value = self.argument(shape, KIND)
        self.arrays[value.name] = drawn.astype(np.float32).astype(np.float64)
        return value

    def mapped(
        self, read: Sequence[Value], maps: Sequence[Sequence[str]], body: Sequence[str], compute: Compute
    ) -> Value:
        """Return a value computed element by element.

        Args:
            read: What it is computed from, known to the body as ``%x`` and ``%y``; it has the shape of the first.
            maps: The loops that index each of them, by the names ``d0``, ``d1``, ...
            body: Operations, of which one defines ``%r``; their types are added.
            compute: The same in NumPy.
        """
        shape = read[0].shape
        dims = [f"d{dim}" for dim in range(len(shape))]
        start, calls = self.empty(shape, KIND), sum("math." in line for line in body)
        made = self.made(shape, KIND, compute, *read, roundings=len(body) + MATH_WEIGHT * calls)
        self.generic(made, start, read, dims, [*maps, dims], len(dims), [f"{line} : {KIND}" for line in body])
        return made

    def each(self, image: Value, body: Sequence[str], compute: Compute) -> Value:
        """Return a function of every element of a value."""
        return self.mapped([image], [[f"d{dim}" for dim in range(len(image.shape))]], body, compute)

    def both(self, left: Value, right: Value, operation: str, compute: Compute) -> Value:
        """Return an operation on the elements of two values of one shape."""
        dims = [f"d{dim}" for dim in range(len(left.shape))]
        return self.mapped([left, right], [dims, dims], [f"%r = arith.{operation} %x, %y"], compute)

    def reshaped(self, value: Value, shape: Sequence[int], groups: Sequence[Sequence[int]]) -> Value:
        """Return a value whose dims are split, or made one.

        Args:
            value: The value.
            shape: The new shape.
            groups: The dims of the longer shape that are one dim of the shorter one.
        """
        made = self.made(shape, KIND, lambda x: x.reshape(tuple(shape)), value, roundings=0)
        places = "[" + ", ".join(str(list(group)) for group in groups) + "]"
        longer = f" output_shape {list(shape)}" if len(shape) > len(value.shape) else ""
        name = "expand_shape" if longer else "collapse_shape"
        self.line(f"%{made.name} = tensor.{name} %{value.name} {places}{longer} : {value.type} into {made.type}")
        return made

    def turned(self, value: Value, order: Sequence[int]) -> Value:
        """Return a value with its dims in another order."""
        start = self.empty([value.shape[dim] for dim in order], KIND)
        made = self.made(start.shape, KIND, lambda x: x.transpose(tuple(order)), value, roundings=0)
        self.line(
            f"%{made.name} = linalg.transpose ins(%{value.name} : {value.type}) outs(%{start.name} : {start.type}) "
            f"permutation = {list(order)}"
        )
        return made

    def padded(self, image: Value, low: Sequence[int], high: Sequence[int], number: float = 0.0) -> Value:
        """Return an image with a number around it; the image itself where both widths are 0.

        Args:
            image: The image.
            low, high: Widths in front and behind, per spatial dim.
            number: The number.
        """
        if not any((*low, *high)):
            return image
        before, behind = self.form.around(low), self.form.around(high)
        shape = [sum(sizes) for sizes in zip(before, image.shape, behind, strict=True)]
        around = [*zip(before, behind, strict=True)]
        scalar = self.constant(number, KIND)
        made = self.made(shape, KIND, lambda x: np.pad(x, around, constant_values=number), image, roundings=0)
        indices = ", ".join(f"%i{dim}: index" for dim in range(len(shape)))
        self.line(f"%{made.name} = tensor.pad %{image.name} low{before} high{behind} {{")
        self.line(f"^bb0({indices}):")
        self.line(f"  tensor.yield %{scalar} : {KIND}")
        self.line(f"}} : {image.type} to {made.type}")
        return made

    def sliced(self, image: Value, offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]) -> Value:
        """Return a part of a value."""
        places = tuple(
            slice(first, first + (size - 1) * step + 1, step)
            for first, size, step in zip(offsets, sizes, strides, strict=True)
        )
        made = self.made(sizes, KIND, lambda x: x[places], image, roundings=0)
        self.line(
            f"%{made.name} = tensor.extract_slice %{image.name}{list(offsets)} {list(sizes)} {list(strides)} "
            f": {image.type} to {made.type}"
        )
        return made

    def repeated(self, vector: Value, shape: Sequence[int]) -> Value:
        """Return an image with an element of a vector per channel (``linalg.broadcast``)."""
        start = self.empty(shape, KIND)
        others = [dim for dim in range(len(shape)) if dim != self.form.channel]

        def compute(x: Array) -> Array:
            return np.broadcast_to(self.form.by_channel(x), tuple(shape))

        made = self.made(shape, KIND, compute, vector, roundings=0)
        self.line(
            f"%{made.name} = linalg.broadcast ins(%{vector.name} : {vector.type}) "
            f"outs(%{start.name} : {start.type}) dimensions = {others}"
        )
        return made
