"""The test whether the reference results of a program can tell wrong numbers from right ones."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from mlir_sched.payload import TensorSpec
from mlir_sched.runner.checks.check import Check
from mlir_sched.runner.worker.comparison import compare
from mlir_sched.tensors.element_types import Array, holds_integers

WIDE_RANGE = 1 << 16
"""Difference of two integers of an output from which it is taken to be varied."""

Reference = tuple[Check, Array]
"""A check, and the right values of one output in it."""


def _finite_share(references: Sequence[Array]) -> float:
    """Return the share of finite elements among all outputs, 0 to 1; integers count as finite; 1 without elements."""
    elements = sum(array.size for array in references)
    finite = sum(array.size if holds_integers(array) else int(np.isfinite(array).sum()) for array in references)
    return finite / elements if elements else 1.0


def usable_share(references: Sequence[Array]) -> float:
    """Return the share of elements that say something, 0 to 1; 0 where all of all outputs are 0 or subnormal.

    These are the finite elements. Where all outputs are integers, a quarter of the elements has to be neither the
    smallest, nor the largest, nor the most frequent one: results of a requantisation may be all alike, or saturated.
    Below the smallest normal number, roundings are no longer relative to what is rounded: tolerances do not hold.
    """
    if not any(map(_says_something, references)):
        return 0.0
    if all(map(holds_integers, references)):
        return min(1.0, 4 * min(_varied_share(array) for array in references if array.size))
    return _finite_share(references)


def most_usable(checks: Iterable[Check], references_of: Callable[[Check], Sequence[Array]]) -> Check:
    """Return the first check whose references are all usable, or of those without such references the most usable one.

    Args:
        checks: The checks, at least one, in the order in which they are tried.
        references_of: Computes the right results of a check. It is called once more where the check that is returned
            was not the last one, so that what it leaves behind belongs to that check.
    """
    share, last = -1.0, None
    for last in checks:
        found = usable_share(references_of(last))
        if found > share:
            best, share = last, found
        if share == 1.0:
            break
    if best is not last:
        references_of(best)
    return best


def _varied_share(array: Array) -> float:
    """Return the share of integers that are neither the smallest, nor the largest, nor the most frequent one.

    One element of each counts as well. Booleans count where both occur, and integers of a wide range always.
    """
    numbers = array.astype(np.int64).reshape(-1)
    lowest, highest = int(numbers.min()), int(numbers.max())
    if array.dtype == np.bool_ or highest - lowest >= WIDE_RANGE:
        return float(lowest != highest)
    counts = np.maximum(np.bincount(numbers - lowest) - 1, 0)
    ends = counts[0] + (counts[-1] if len(counts) > 1 else 0)
    return 1.0 - float(ends + counts[1:-1].max(initial=0)) / array.size


@dataclass(frozen=True)
class Telling:
    """Which checks tell wrong results from right ones.

    Attributes:
        checks: Indices of checks in ascending order; each output that is not constant is told by one of them.
        constant: One sentence for each output that no check tells: it does not differ from zeros, or not from its
            result in another check.
    """

    checks: tuple[int, ...]
    constant: tuple[str, ...]


def why_unverifiable(found: Sequence[Sequence[Array]], constant: Sequence[str]) -> str:
    """Return why no wrong result could be told from a right one, or an empty text if it could.

    Every output needs a finite element in some check, and at least one output must not be constant.
    """
    outputs = len(found[0])
    if not outputs:
        return "it returns nothing"
    for position in range(outputs):
        if not any(_finite_share([arrays[position]]) > 0 for arrays in found):
            return f"output {position} has no finite element, whatever the inputs"
    counted = sum(array.size > 0 for array in found[0]) or outputs
    return "; ".join(constant) if len(constant) == counted else ""


def telling(outputs: Sequence[TensorSpec], checks: Sequence[Check], found: Sequence[Sequence[Array]]) -> Telling:
    """Return the first check that tells each output: its reference differs from zeros and from that of another check.

    It has a finite element, and results differ by more than the tolerance. An output without elements counts only where
    no output has any. Where there is only one check, the result shifted by half its elements takes the place of another
    check's result; a single number is compared with 0 only.
    """
    first, constant = set[int](), []
    for position, spec in enumerate(outputs):
        if not spec.elements and any(other.elements for other in outputs):
            continue
        of_output = [(check, arrays[position]) for check, arrays in zip(checks, found, strict=True)]
        index = next((i for i in range(len(of_output)) if _tells(of_output, i, spec)), None)
        if index is not None:
            first.add(index)
        elif any(_differs_from_zeros(of_check, spec) for of_check in of_output):
            constant.append(f"output {position} is the same, whatever the inputs")
        else:
            constant.append(f"output {position} is not to be told from zeros")
    return Telling(tuple(sorted(first)), tuple(constant))


def _tells(of_output: Sequence[Reference], index: int, spec: TensorSpec) -> bool:
    """Say whether a reference of an output would expose zeros, and the result of another check."""
    own = of_output[index]
    return (
        _finite_share([own[1]]) > 0
        and _differs_from_zeros(own, spec)
        and any(_differ(own, other, spec) for other in _others(of_output, index))
    )


def _others(of_output: Sequence[Reference], index: int) -> Iterator[Array]:
    """Yield wrong results of one output that must not pass for its reference in a check."""
    if len(of_output) == 1:
        array = of_output[0][1]
        yield np.roll(array, array.size // 2 + 1) if array.size > 1 else np.zeros_like(array)
    for other in (index + 1, index - 1):
        if 0 <= other < len(of_output):
            yield of_output[other][1]


def _differs_from_zeros(reference: Reference, spec: TensorSpec) -> bool:
    return _differ(reference, np.zeros_like(reference[1]), spec)


def _differ(reference: Reference, wrong: Array, spec: TensorSpec) -> bool:
    check, right = reference
    return compare(right, wrong, spec, check.tolerance_for(spec, right)) is not None


def _says_something(array: Array) -> bool:
    """Say whether an array has an element that is neither 0 nor, as a float, subnormal."""
    if holds_integers(array):
        return bool(array.any())
    smallest = ml_dtypes.finfo(array.dtype).smallest_normal  # type: ignore[no-untyped-call]
    with np.errstate(invalid="ignore"):
        return bool((np.abs(array) >= smallest).any())  # not for NaN
