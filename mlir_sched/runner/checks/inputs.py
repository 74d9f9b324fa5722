"""The input tensors of checks: the values that each kind of check fills them with."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mlir_sched.payload import TensorSpec
from mlir_sched.runner.checks.captured import read_values
from mlir_sched.runner.checks.check import Check, InputKind, IntegerRange, Integers
from mlir_sched.tensors.element_types import Array, dtype_of, integer_limits, is_integer

EXTREME_RUN = 8
"""Neighbouring elements that hold one extreme value: kernels add products of up to four neighbours before they widen
the sum, and two of the largest products already exceed 16 bits."""
EXTREME_SHARE = 1 / 16
"""Share of such runs, so that runs of two operands meet in about one of 256 runs of a sum, and others stay random."""

WIDE_STEPS = tuple(2**bits for bits in (14, 18, 22, 26))
"""Magnitudes tried for integers wider than a byte, where results hardly depend on smaller ones: such inputs are sums of
products of bytes, which a rescaling divides by up to their number times a byte. 32 sums of the largest magnitude fit
32 bits."""
SCALE_STEPS = tuple(2.0**-bits for bits in (4, 8, 12, 16, 20))
"""Factors tried on floats, where results are saturated: floats that scale sums of products of bytes. Powers of 2 keep
small integers exact."""

RELU_GAIN = math.sqrt(2.0)
"""Gain that keeps the magnitude through layers that set half of their results to 0 (He et al., ICCV 2015)."""

LARGER = (1.0, 1e3, 1e6)
"""Factors on random numbers that are tried where results are the same whatever the inputs. Each step costs a call. f16
holds 60 times the second one; of types that do not hold a factor, results are not finite, and it is of no use."""

MOST_MAGNITUDE = 1e6
"""Largest magnitude of captured floats that drawn ones take; its inverse is the smallest. Larger numbers hide others,
as masks of -3e38 are meant to, and squares of smaller ones vanish beside 1 in f32."""

_OTHER_SEED = 100
"""Added to the seed of a check for other numbers; no check has a seed as large."""

_PARTS_SEED = 20261122
"""Seed of the division of inputs into parts: the same in all checks, so that the parts of an input are disjoint."""

_MOVING_SEED = 20261126
"""Seed of the rounding of inputs."""

PROBES = 8
"""Times that all inputs are rounded at random to see how far that moves each element of a result."""


def make_inputs(specs: Sequence[TensorSpec], check: Check) -> tuple[Array, ...]:
    """Return one array per tensor, filled as the check says; equal arguments give equal arrays on any machine.

    Raises:
        ValueError: The check has more or fewer integer ranges than inputs or numbers than inputs passed by value, or an
            element type cannot hold its range.
    """
    if check.given is not None:
        return tuple(value.array for value in check.given.inputs)
    if check.kind == InputKind.CAPTURED:
        tensors = read_values(Path(check.captured), [spec for spec in specs if not spec.by_value])
        return _with_numbers(specs, tensors, check.numbers)
    rng = np.random.default_rng(check.seed)
    ranges = check.integer_ranges if check.integer_ranges is not None else (None,) * len(specs)
    if len(ranges) != len(specs):
        raise ValueError(f"{len(specs)} inputs, but {len(ranges)} integer ranges")
    like = _captured_by_position(specs, check)
    arrays = [
        _make_input(spec, check, limits, like.get(i), rng)
        for i, (spec, limits) in enumerate(zip(specs, ranges, strict=True))
    ]
    for position in _sparse_inputs(specs, check):
        divided = np.random.default_rng([_PARTS_SEED, position]).integers(0, check.parts, specs[position].shape)
        arrays[position][divided != check.part] = 0
    if check.numbers:
        others = [array for array, spec in zip(arrays, specs, strict=True) if not spec.by_value]
        return _with_numbers(specs, others, check.numbers)
    return tuple(arrays)


def alternatives(check: Check, specs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> Iterator[Check]:
    """Yield the check, and then the checks to try in its place while references say little (``usable_share``).

    Random numbers come first as they are, then scaled down like weights by the fan of the input's shape, so that values
    keep their magnitude through many layers, then positive, for roots and logarithms. Given inputs stay, and so do
    exact ones, but where all outputs are integers: these are also computed from larger integers and from smaller
    floats, as the scale of a requantisation decides whether its results are all alike, or all saturated.
    """
    yield check
    if check.kind == InputKind.GIVEN:
        return
    if check.captured:
        yield from alternatives(replace(check, kind=InputKind.RANDOM, captured=""), specs, outputs)
        return
    if all(is_integer(spec) for spec in outputs):
        if any(is_integer(spec) and dtype_of(spec).itemsize > 1 for spec in specs):
            yield from (replace(check, wide=wide) for wide in WIDE_STEPS)
        if not all(is_integer(spec) for spec in specs):
            yield from (replace(check, scale=scale) for scale in SCALE_STEPS)
    if check.kind == InputKind.RANDOM:
        yield replace(check, gain=1.0)
        yield replace(check, gain=RELU_GAIN)
        yield replace(check, kind=InputKind.POSITIVE)
    if check.kind in (InputKind.RANDOM, InputKind.POSITIVE):
        yield replace(check, kind=InputKind.POSITIVE, gain=1.0)


def other_draws(check: Check) -> Iterator[Check]:
    """Yield the checks to try in the place of a random one while results are the same, whatever the inputs.

    They have other random numbers, and then larger ones: a network of many layers with biases hardly depends on small
    inputs.
    """
    if check.kind == InputKind.RANDOM:
        for factor in LARGER:
            yield replace(check, seed=check.seed + _OTHER_SEED, scale=factor)


def moved_by_rounding(array: Array, number: int) -> Array:
    """Return an input of f32 or f64 whose elements are each moved by up to one rounding, at random; others as they are.

    Elements of narrower floats cannot be moved by the rounding of what is computed from them. Equal numbers move equal
    inputs in the same way.
    """
    if array.dtype not in (np.float32, np.float64):
        return array
    moved = np.random.default_rng([_MOVING_SEED, number]).uniform(-1.0, 1.0, array.shape) * np.finfo(array.dtype).eps
    return np.asarray(array.astype(np.float64) * (1.0 + moved), array.dtype)


def fan(shape: Sequence[int]) -> float:
    """Return the mean of the fan-in and the fan-out of weights of a shape, 1 for vectors.

    Which dimensions are channels is not known: the two longest are taken for channels, the others for the filter's
    window.

    Source: Glorot & Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010.
    """
    if len(shape) < 2:
        return 1.0
    *window, first, second = sorted(shape)
    return max(1.0, math.prod(window) * (first + second) / 2)


def _captured_by_position(specs: Sequence[TensorSpec], check: Check) -> dict[int, Array]:
    """Return the captured tensors whose magnitudes are drawn, by position of the input."""
    if not check.captured:
        return {}
    tensors = {position: spec for position, spec in enumerate(specs) if not spec.by_value}
    return dict(zip(tensors, read_values(Path(check.captured), list(tensors.values())), strict=True))


def _magnitude(like: Array | None) -> float:
    """Return the root mean square of captured floats; 1 where they do not vary, or are not numbers as others are."""
    if like is None or like.size == 0:
        return 1.0
    numbers = like.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        magnitude = math.sqrt(np.square(numbers).mean())
    usable = 1 / MOST_MAGNITUDE <= magnitude <= MOST_MAGNITUDE
    return magnitude if usable and numbers.min() < numbers.max() else 1.0


def _with_numbers(
    specs: Sequence[TensorSpec], tensors: Sequence[Array], numbers: Sequence[int | float]
) -> tuple[Array, ...]:
    """Return the inputs of which the tensors and the numbers are given, each in their order."""
    scalars = [spec for spec in specs if spec.by_value]
    made = iter(np.array(number, dtype_of(spec)) for number, spec in zip(numbers, scalars, strict=True))
    given = iter(tensors)
    return tuple(next(made if spec.by_value else given) for spec in specs)


def _make_input(
    spec: TensorSpec, check: Check, limits: IntegerRange | None, like: Array | None, rng: np.random.Generator
) -> Array:
    """Return the values of an input.

    Args:
        limits: Range of its integers, if it is known.
        like: Captured values, whose magnitude floats and whose range wide integers of both signs take.
    """
    dtype = dtype_of(spec)
    if dtype.kind == "c":
        return _make_input(TensorSpec((*spec.shape, 2), "f32"), check, None, None, rng).view(dtype).reshape(spec.shape)
    if dtype.kind == "b":
        values: Any = rng.integers(0, 2, spec.shape, dtype=np.int8)
    elif is_integer(spec):
        values = _integers(spec, check, limits, like, rng)
    elif check.kind == InputKind.EXACT:
        values = _nonzero(spec, check.bound, rng) * check.scale
    elif check.kind == InputKind.POSITIVE:
        values = rng.uniform(0.5, 1.5, spec.shape) * (1.0 if check.gain is None else check.gain / fan(spec.shape))
    else:
        values = rng.standard_normal(spec.shape, dtype=np.float64 if dtype == np.float64 else np.float32)
        gain = 1.0 if check.gain is None else check.gain / math.sqrt(fan(spec.shape))
        factor = gain * check.scale * _magnitude(like)
        values = values if factor == 1.0 else values * factor
    with np.errstate(over="ignore"):  # a factor of LARGER may be too large for the type
        return np.ascontiguousarray(values, dtype=dtype).reshape(spec.shape)


def _integers(
    spec: TensorSpec, check: Check, limits: IntegerRange | None, like: Array | None, rng: np.random.Generator
) -> Any:
    lowest, highest = integer_limits(spec)
    if limits is not None:
        if limits[0] < lowest or limits[1] > highest:
            raise ValueError(f"a range of integers, {limits}, is out of bounds for {spec.element_type}")
        return rng.integers(*limits, spec.shape, dtype=_drawn_as(spec), endpoint=True)
    if check.integers == Integers.SMALL:
        return _nonzero(spec, min(check.bound, highest), rng)
    if check.integers == Integers.INDICES:
        return rng.integers(0, min(check.bound, highest), spec.shape, dtype=np.int8, endpoint=True)
    if dtype_of(spec).itemsize > 1:
        bounds = (max(-check.wide, lowest), min(check.wide, highest))
        if like is not None and like.size and like.min() < like.max():
            bounds = (int(like.min()), int(like.max()))
        return rng.integers(*bounds, spec.shape, dtype=_drawn_as(spec), endpoint=True)
    return _with_extremes(rng.integers(lowest, highest, spec.shape, dtype=_drawn_as(spec), endpoint=True), spec, rng)


def _drawn_as(spec: TensorSpec) -> Any:
    """Return the numpy type that integers of a type are drawn in."""
    return dtype_of(spec) if dtype_of(spec).kind in "iu" else np.int8


def _with_extremes(values: Array, spec: TensorSpec, rng: np.random.Generator) -> Array:
    """Return values some runs of which hold the lowest or highest value of their type, 0 or -1 (all bits set)."""
    lowest, highest = integer_limits(spec)
    extremes = np.array([lowest, highest, 0, highest if lowest == 0 else -1], values.dtype)
    runs = values.reshape(-1)[: values.size // EXTREME_RUN * EXTREME_RUN].reshape(-1, EXTREME_RUN)
    chosen = np.flatnonzero(rng.random(len(runs)) < EXTREME_SHARE)
    runs[chosen] = rng.choice(extremes, (len(chosen), 1))
    return values


def _nonzero(spec: TensorSpec, bound: int, rng: np.random.Generator) -> Any:
    sign = 2 * rng.integers(0, 2, spec.shape, dtype=np.int8) - 1
    return sign * rng.integers(1, bound, spec.shape, dtype=np.int8, endpoint=True)


def _sparse_inputs(specs: Sequence[TensorSpec], check: Check) -> list[int]:
    """Return the positions of the inputs of which only one part is not 0: those the check names, or all floats."""
    if check.parts == 1:
        return []
    floats = [position for position, spec in enumerate(specs) if not is_integer(spec)]
    return [position for position in floats if specs[position] in check.sparse] or floats
