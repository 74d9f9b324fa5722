"""A random network under construction."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from benchmarks.fuzz.draft import Array, Compute, Draft
from benchmarks.fuzz.networks.form import Form
from benchmarks.mlir_text import Value
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
            terms: How many of them a result sums, so that results are about as large as what they are computed from.
            offset: Their mean.
        """
        drawn = self.drawn(Value("", tuple(shape), KIND)) / (1.0 if self.whole else sqrt(terms)) + offset
        if self.stores:
            return self.stored(drawn)
        value = self.argument(*shape, kind=KIND)
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
            groups: The dims of the longer shape that are one dim of the shorter one.
        """
        made = self.made(shape, KIND, lambda x: x.reshape(tuple(shape)), value, roundings=0)
        places = "[" + ", ".join(str(list(group)) for group in groups) + "]"
        longer = f" output_shape {list(shape)}" if len(shape) > len(value.shape) else ""
        name = "expand_shape" if longer else "collapse_shape"
        self.line(f"%{made.name} = tensor.{name} %{value.name} {places}{longer} : {value.type} into {made.type}")
        return made

    def padded(self, image: Value, low: Sequence[int], high: Sequence[int], number: float = 0.0) -> Value:
        """Return an image with a number around it; the image itself where both widths are 0.

        Args:
            low, high: Widths in front and behind, per spatial dim.
        """
        if not any((*low, *high)):
            return image
        return self.pad(image, self.form.around(low), self.form.around(high), number)

    def repeated(self, vector: Value, shape: Sequence[int]) -> Value:
        """Return an image with an element of a vector per channel (``linalg.broadcast``)."""
        start = self.empty(shape, KIND)
        others = [dim for dim in range(len(shape)) if dim != self.form.channel]

        def compute(x: Array) -> Array:
            return np.broadcast_to(self.form.by_channel(x), tuple(shape))

        made = self.made(shape, KIND, compute, vector, roundings=0)
        self.linalg(made, "broadcast", [vector], start, f"dimensions = {others}")
        return made
