"""A random program under construction: MLIR text, and beside it the same computation in NumPy.

Floats are computed in f64 and rounded to their type where the program rounds them; integers wrap as in MLIR.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from benchmarks.mlir_text import FunctionText, Value, generic_over, is_float, operands

T = TypeVar("T")
Array: TypeAlias = NDArray[Any]
Compute: TypeAlias = Callable[..., Array]

DTYPES: dict[str, Any] = {
    "f64": np.float32, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
    "i32": np.int32, "i16": np.int16, "i8": np.int8, "i4": ml_dtypes.int4,
}  # fmt: skip
"""The types of tensors, and NumPy's name for what their elements are in compiled programs (:attr:`Value.compiled`)."""
NARROW = ("f8E4M3FN", "f8E5M2", "i4")
"""Types that programs store and move, and widen before they compute."""
EXTENTS = (1, 2, 3, 5, 7, 8, 13, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65)
"""Extents of tensors: ones, primes, powers of two and what lies beside them. Tiles and vectors fit, or leave a rest."""
DRAWN_FROM = {"i4": (-8, 8), "i8": (-128, 128), "i16": (-1000, 1001), "i32": (-1000, 1001)}
"""The range of drawn integers, the end exclusive: bytes and what is narrower take all of theirs."""


@dataclass(frozen=True)
class Step:
    """How a value is computed from others.

    Attributes:
        value: The value.
        compute: Computes it, floats in f64.
        read: What ``compute`` takes.
        roundings: Machine epsilons by which compiled code may be off, relative to what it reads.
    """

    value: Value
    compute: Compute
    read: tuple[Value, ...]
    roundings: float


@dataclass
class Draft(FunctionText):
    """A program so far.

    Attributes:
        rng: Draws everything.
        whole: Whether inputs that are floats are whole numbers, whose sums and products are exact while they are small.
        steps: How each value is computed from others, in order.
        arrays: The elements of each value by its name, floats in f64.
    """

    rng: np.random.Generator
    whole: bool
    steps: list[Step] = field(default_factory=list)
    arrays: dict[str, Array] = field(default_factory=dict)

    def argument(self, *shape: int, kind: str = "f32") -> Value:
        """Add an argument, whose elements are drawn, and return it."""
        value = super().argument(*shape, kind=kind)
        self.arrays[value.name] = rounded(self.drawn(value), kind)
        return value

    def stored(self, array: Array) -> Value:
        """Return a constant tensor of f32."""
        held = rounded(array, "f32")
        value = self.made(held.shape, "f32", lambda: held)
        self.line(f'%{value.name} = arith.constant dense<"0x{held.astype("<f4").tobytes().hex()}"> : {value.type}')
        return value

    def made(self, shape: Sequence[int], kind: str, compute: Compute, *read: Value, roundings: float = 1.0) -> Value:
        """Return a new value that is computed from others; the caller adds the operation that defines it."""
        value = self.value(shape, kind)
        self.steps.append(Step(value, compute, read, roundings))
        with np.errstate(all="ignore"):
            self.arrays[value.name] = rounded(compute(*(self.arrays[each.name] for each in read)), kind)
        return value

    def generic(
        self,
        made: Value,
        start: Value,
        read: Sequence[Value],
        loops: Sequence[str],
        maps: Sequence[Sequence[str]],
        parallel: int,
        body: Sequence[str],
    ) -> None:
        """Add a ``linalg.generic``.

        Args:
            made, start: What it returns, and the tensor that it writes into.
            read: Its inputs; the body knows their elements as ``%x`` and ``%y``, and that of ``start`` as ``%o``.
            maps: The loops that index each input, and the result.
            parallel: How many loops are parallel; the others follow them and reduce.
            body: Operations, of which one defines ``%r``, what the body yields.
        """
        elements = ", ".join(f"%{name}: {value.kind}" for name, value in zip("xy", read, strict=False))
        iterators = "p" * parallel + "r" * (len(loops) - parallel)
        self.region(
            f"%{made.name} = {generic_over(loops, [', '.join(each) for each in maps], iterators)} "
            f"ins({operands(read)}) outs({operands([start])})",
            f"{elements}, %o: {made.kind}",
            [*body, f"linalg.yield %r : {made.kind}"],
            f"-> {made.type}",
        )

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """Return a value with its dims in another order."""
        start = self.empty([value.shape[dim] for dim in order], value.kind)
        made = self.made(start.shape, value.kind, lambda x: x.transpose(tuple(order)), value, roundings=0)
        self.linalg(made, "transpose", [value], start, f"permutation = {list(order)}")
        return made

    def pad(self, value: Value, low: Sequence[int], high: Sequence[int], number: float = 0.0) -> Value:
        """Return a value with a number around it, given the widths in front and behind of each dim."""
        shape = [sum(sizes) for sizes in zip(low, value.shape, high, strict=True)]
        around, scalar = [*zip(low, high, strict=True)], self.constant(number, value.kind)
        made = self.made(shape, value.kind, lambda x: np.pad(x, around, constant_values=number), value, roundings=0)
        self.padding(made, value, low, high, scalar)
        return made

    def extract_slice(
        self, value: Value, offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]
    ) -> Value:
        """Return a part of a value."""
        along = zip(offsets, sizes, strides, strict=True)
        places = tuple(slice(first, first + (size - 1) * step + 1, step) for first, size, step in along)
        made = self.made(sizes, value.kind, lambda x: x[places], value, roundings=0)
        self.slicing(made, value, offsets, strides)
        return made

    def concat(self, values: Sequence[Value], axis: int) -> Value:
        """Return values that are joined along one dim."""
        first = values[0]
        shape = [*first.shape[:axis], sum(value.shape[axis] for value in values), *first.shape[axis + 1 :]]
        made = self.made(shape, first.kind, lambda *arrays: np.concatenate(arrays, axis), *values, roundings=0)
        names, types = ", ".join(f"%{value.name}" for value in values), ", ".join(value.type for value in values)
        self.line(f"%{made.name} = tensor.concat dim({axis}) {names} : ({types}) -> {made.type}")
        return made

    def any_of(self, options: Sequence[T]) -> T:
        """Return one of some options."""
        return options[int(self.rng.integers(len(options)))]

    def drawn(self, value: Value) -> Array:
        """Return elements for a value."""
        if not value.is_float:
            return self.rng.integers(*DRAWN_FROM[value.kind], value.shape)
        return self.rng.integers(-2, 3, value.shape) if self.whole else self.rng.normal(size=value.shape)


def rounded(array: Array, kind: str) -> Array:
    """Return an array as a type holds it, floats in f64 again."""
    with np.errstate(all="ignore"):
        found = np.asarray(array).astype(DTYPES[kind])
    return found.astype(np.float64) if is_float(kind) else found
