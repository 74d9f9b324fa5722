"""Random programs by seed."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TypeAlias

import ml_dtypes
import numpy as np

from benchmarks.fuzz.draft import DTYPES, EXTENTS, NARROW, Array, Draft, Step, rounded
from benchmarks.fuzz.elementwise import (
    combined,
    converted,
    dequantised,
    elementwise,
    quantised,
    requantised,
    with_another,
)
from benchmarks.fuzz.movement import lengthened, padded, sliced, transposed
from benchmarks.fuzz.reductions import convolved, multiplied, reduced, softmax
from benchmarks.mlir_text import Value
from mlir_sched.runner.checks.rounding import machine_epsilon

Operation: TypeAlias = Callable[[Draft, Value], Value | None]
"""Adds MLIR to a draft, and the same computation in NumPy; returns None where a value cannot be its operand."""

OPERATIONS: tuple[Operation, ...] = (
    elementwise, elementwise, with_another, converted, quantised, requantised, dequantised, multiplied, multiplied,
    convolved, convolved, reduced, transposed, padded, sliced, lengthened, softmax,
)  # fmt: skip
"""All operations, the frequent ones more than once."""
NARROW_OPERATIONS: tuple[Operation, ...] = (converted, converted, transposed, padded, sliced, lengthened)
"""Those that values of :data:`~benchmarks.fuzz.draft.NARROW` types can have."""
FEWEST, MOST = 2, 8
"""Operations of a program, fewest and most."""
KINDS = ("f32", "f32", "f32", "f32", "f16", "f16", "bf16", "bf16", "f64", "i8", "i8", "i32", *NARROW)
"""The types that programs begin with, as often as they do."""
MOST_ELEMENTS = 1 << 16
"""Most elements of a tensor: a call takes microseconds, and a program seconds to be tuned."""
HEADROOM = 16
"""Part of the largest float that values reach at most: sums and products that are computed in another order do not
overflow on their way."""


@dataclass(frozen=True)
class RandomProgram:
    """A finished program.

    Attributes:
        text: MLIR.
        inputs, outputs: Its tensors.
        steps: How the values are computed, in order.
        arrays: The inputs that it is judged with, in their types.
    """

    text: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    steps: tuple[Step, ...]
    arrays: tuple[Array, ...]

    def evaluate(self, noise: np.random.Generator | None = None, factor: float = 1.0) -> list[Array]:
        """Return the outputs, floats in f64.

        Args:
            noise: Draws normal relative errors that each step reads its floats with; none are added without it.
            factor: Their standard deviation, in the roundings of the step.
        """
        known = {value.name: rounded(array, value.kind) for value, array in zip(self.inputs, self.arrays, strict=True)}
        for step in self.steps:
            read = [known[each.name] for each in step.read]
            if noise is not None:
                read = [_perturbed(array, factor * _error(step), noise) for array in read]
            with np.errstate(all="ignore"):
                known[step.value.name] = rounded(step.compute(*read), step.value.kind)
        return [known[value.name] for value in self.outputs]


def random_program(seed: int) -> RandomProgram:
    """Return the program of a seed: 2 to 8 operations on one value, which may branch, with one to three results."""
    rng = np.random.default_rng(seed)
    draft = Draft(rng, whole=bool(rng.random() < 0.5))
    chain = [draft.argument(*_first_shape(draft), kind=draft.any_of(KINDS))]
    wanted = int(rng.integers(FEWEST, MOST + 1))
    for _ in range(10 * wanted):
        attempt = deepcopy(draft)
        made = _grown(attempt, chain)
        if made is None:
            draft.rng = attempt.rng
            continue
        draft, chain = attempt, [*chain, made]
        if len(chain) > wanted:
            break
    return finished(draft, _results(draft, chain[1:] or chain))


def _first_shape(draft: Draft) -> tuple[int, ...]:
    """Return the shape of a program's first argument: a vector, a matrix, matrices or an image."""
    rank = draft.any_of([1, 2, 2, 2, 3, 4, 4])
    if rank == 4:
        return (1, draft.any_of([5, 9, 14, 17]), draft.any_of([5, 8, 13, 16]), draft.any_of([1, 3, 8, 16, 17, 32]))
    return tuple(draft.any_of(EXTENTS) for _ in range(rank))


def _grown(draft: Draft, chain: Sequence[Value]) -> Value | None:
    """Return a new value; None where it does not come about, is too large or nears the end of its type."""
    source = draft.any_of(chain) if draft.rng.random() < 0.2 else chain[-1]
    made = draft.any_of(OPERATIONS if source.kind not in NARROW else NARROW_OPERATIONS)(draft, source)
    if made is not None:
        alike = [value for value in chain if (value.shape, value.kind) == (made.shape, made.kind)]
        if alike and made.kind not in NARROW and draft.rng.random() < 0.3:
            made = combined(draft, made, draft.any_of(alike))
    return made if made is not None and _fits(made, draft.arrays[made.name]) else None


def _fits(value: Value, array: Array) -> bool:
    finfo = ml_dtypes.finfo(DTYPES[value.kind]) if value.is_float else None  # type: ignore[no-untyped-call]
    most = float(finfo.max) / HEADROOM if finfo else np.inf
    return array.size <= MOST_ELEMENTS and bool(np.all(np.abs(array.astype(np.float64)) <= most))


def _results(draft: Draft, made: list[Value]) -> list[Value]:
    """Return the last value, and sometimes one or two others."""
    others = [value for value in made[:-1] if draft.rng.random() < 0.2]
    return [made[-1], *others[:2]]


def finished(draft: Draft, outputs: Sequence[Value]) -> RandomProgram:
    """Return the program that returns some of a draft's values."""
    arrays = tuple(draft.arrays[value.name].astype(DTYPES[value.kind]) for value in draft.inputs)
    return RandomProgram(draft.program(*outputs), tuple(draft.inputs), tuple(outputs), tuple(draft.steps), arrays)


def _error(step: Step) -> float:
    """Return the relative error that a step may add to the floats that it reads."""
    floats = [value for value in (step.value, *step.read) if value.is_float]
    return step.roundings * machine_epsilon(floats[0].compiled) if floats else 0.0


def _perturbed(array: Array, error: float, noise: np.random.Generator) -> Array:
    """Return floats with normal relative errors; integers as they are."""
    return array * (1.0 + error * noise.standard_normal(array.shape)) if array.dtype == np.float64 else array
