"""A random program under construction: MLIR text, and beside it the same computation in NumPy.

Floats are computed in f64 and rounded to their type where the program rounds them; integers wrap as in MLIR.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

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
DRAWN_FROM = {"i4": (-8, 8), "i8": (-128, 128), "i16": (-1000, 1001), "i32": (-1000, 1001)}
"""The range of drawn integers, the end exclusive: bytes and what is narrower take all of theirs."""


@dataclass(frozen=True)
class Value:
    """A tensor of the program: its name without ``%``, its shape and its element type."""

    name: str
    shape: tuple[int, ...]
    kind: str

    @property
    def type(self) -> str:
        """Its MLIR type."""
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.kind}>"

    @property
    def compiled(self) -> str:
        """The type of its elements in a compiled program: IREE demotes f64 to f32 unless it is told otherwise."""
        return "f32" if self.kind == "f64" else self.kind

    @property
    def is_float(self) -> bool:
        """Whether its elements are floats."""
        return is_float(self.kind)


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
class Draft:
    """A program so far.

    Attributes:
        rng: Draws everything.
        inputs: The arguments.
        lines: The body.
        steps: How each value is computed from others, in order.
        arrays: The elements of each value by its name, floats in f64.
        whole: Whether inputs that are floats are whole numbers, whose sums and products are exact while they are small.
    """

    rng: np.random.Generator
    whole: bool
    inputs: list[Value] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    arrays: dict[str, Array] = field(default_factory=dict)
    _names: int = 0

    def argument(self, shape: Sequence[int], kind: str) -> Value:
        """Return a new argument, whose elements are drawn."""
        value = Value(f"arg{len(self.inputs)}", tuple(shape), kind)
        self.inputs.append(value)
        self.arrays[value.name] = rounded(self.drawn(value), kind)
        return value

    def name(self) -> str:
        """Return a name that is not used yet."""
        self._names += 1
        return f"v{self._names}"

    def line(self, text: str) -> None:
        """Add an operation."""
        self.lines.append(f"  {text}")

    def constant(self, number: float, kind: str) -> str:
        """Return the name of a scalar constant."""
        name = self.name()
        self.line(f"%{name} = arith.constant {_literal(number, kind)} : {kind}")
        return name

    def stored(self, array: Array) -> Value:
        """Return a constant tensor of f32."""
        held = rounded(array, "f32")
        value = self.made(held.shape, "f32", lambda: held)
        self.line(f'%{value.name} = arith.constant dense<"0x{held.astype("<f4").tobytes().hex()}"> : {value.type}')
        return value

    def empty(self, shape: Sequence[int], kind: str) -> Value:
        """Return a tensor without defined elements, for an operation to write into."""
        value = Value(self.name(), tuple(shape), kind)
        self.line(f"%{value.name} = tensor.empty() : {value.type}")
        return value

    def filled(self, shape: Sequence[int], kind: str, number: float = 0.0) -> Value:
        """Return a tensor filled with a number."""
        scalar, empty = self.constant(number, kind), self.empty(shape, kind)
        value = Value(self.name(), empty.shape, kind)
        self.line(
            f"%{value.name} = linalg.fill ins(%{scalar} : {kind}) outs(%{empty.name} : {empty.type}) -> {value.type}"
        )
        return value

    def made(self, shape: Sequence[int], kind: str, compute: Compute, *read: Value, roundings: float = 1.0) -> Value:
        """Return a new value that is computed from others; the caller adds the operation that defines it."""
        value = Value(self.name(), tuple(shape), kind)
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
            loops: The names of its loops.
            maps: The loops that index each input, and the result.
            parallel: How many loops are parallel; the others follow them and reduce.
            body: Operations, of which one defines ``%r``, what the body yields.
        """
        listed = ", ".join(f"affine_map<({', '.join(loops)}) -> ({', '.join(each)})>" for each in maps)
        kinds = ", ".join('"parallel"' if place < parallel else '"reduction"' for place in range(len(loops)))
        names, types = ", ".join(f"%{value.name}" for value in read), ", ".join(value.type for value in read)
        elements = ", ".join(f"%{name}: {value.kind}" for name, value in zip("xy", read, strict=False))
        self.line(
            f"%{made.name} = linalg.generic {{indexing_maps = [{listed}], iterator_types = [{kinds}]}} "
            f"ins({names} : {types}) outs(%{start.name} : {start.type}) {{"
        )
        self.line(f"^bb0({elements}, %o: {made.kind}):")
        for line in (*body, f"linalg.yield %r : {made.kind}"):
            self.line(f"  {line}")
        self.line(f"}} -> {made.type}")

    def any_of(self, options: Sequence[T]) -> T:
        """Return one of some options."""
        return options[int(self.rng.integers(len(options)))]

    def drawn(self, value: Value) -> Array:
        """Return elements for a value."""
        if not value.is_float:
            return self.rng.integers(*DRAWN_FROM[value.kind], value.shape)
        return self.rng.integers(-2, 3, value.shape) if self.whole else self.rng.normal(size=value.shape)


def _literal(number: float, kind: str) -> str:
    """Return a scalar as MLIR writes it, minus infinity as the bits of an f32."""
    if number == -np.inf:
        return "0xFF800000"
    return str(float(number) if is_float(kind) else int(number))


def is_float(kind: str) -> bool:
    """Return whether an element type is one of floats."""
    return "f" in kind


def rounded(array: Array, kind: str) -> Array:
    """Return an array as a type holds it, floats in f64 again."""
    with np.errstate(all="ignore"):
        found = np.asarray(array).astype(DTYPES[kind])
    return found.astype(np.float64) if is_float(kind) else found
