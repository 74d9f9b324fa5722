"""The test whether the reference results of a program can tell wrong numbers from right ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from mlir_sched.payload import TensorSpec
from mlir_sched.runner.check import Check
from mlir_sched.runner.element_types import Array
from mlir_sched.runner.worker.comparison import compare

Reference = tuple[Check, Array]
"""A check, and the right values of one output in it."""


def finite_share(references: Sequence[Array]) -> float:
    """Return the share of finite elements among all outputs, 0 to 1; integers count as finite."""
    elements = sum(array.size for array in references)
    finite = sum(int(np.isfinite(array).sum()) if _is_float(array) else array.size for array in references)
    return finite / elements if elements else 1.0


def usable_share(references: Sequence[Array]) -> float:
    """Return the share of finite elements, or 0 where all elements of all outputs are 0."""
    return finite_share(references) if any(array.any() for array in references) else 0.0


def why_unverifiable(found: Sequence[Sequence[Array]], constant: Sequence[str]) -> str:
    """Return why no wrong result could be told from a right one, or an empty text if it could.

    Every output needs a finite element in some check, and at least one output must not be constant.

    Args:
        found: The reference of every output, per check.
        constant: What :func:`constant_outputs` says of them.
    """
    outputs = len(found[0])
    for position in range(outputs):
        if not any(finite_share([arrays[position]]) > 0 for arrays in found):
            return f"output {position} has no finite element, whatever the inputs"
    return "; ".join(constant) if len(constant) == outputs else ""


def constant_outputs(
    outputs: Sequence[TensorSpec], checks: Sequence[Check], found: Sequence[Sequence[Array]]
) -> tuple[str, ...]:
    """Return one sentence for each output that does not differ from zeros, or not from its result in another check.

    Results differ by more than the tolerance. Where there is only one check, the result shifted by half its elements
    takes the place of another check's result; a single number is compared with 0 only.

    Args:
        outputs: The outputs of the program.
        checks: The checks.
        found: The reference of every output, per check.
    """
    reasons = []
    for position, spec in enumerate(outputs):
        of_output = [(check, arrays[position]) for check, arrays in zip(checks, found, strict=True)]
        if not any(_differ(of_check, np.zeros_like(of_check[1]), spec) for of_check in of_output):
            reasons.append(f"output {position} is not to be told from zeros")
        elif not any(_differ(of_check, other, spec) for of_check, other in _others(of_output)):
            reasons.append(f"output {position} is the same, whatever the inputs")
    return tuple(reasons)


def _others(of_output: Sequence[Reference]) -> Iterator[tuple[Reference, Array]]:
    """Yield references of one output, each with a wrong result that must not pass for it."""
    for first, (_, second) in pairwise(of_output):
        yield first, second
    if len(of_output) == 1:
        ((_, array),) = of_output
        yield of_output[0], np.roll(array, array.size // 2 + 1) if array.size > 1 else np.zeros_like(array)


def _differ(reference: Reference, wrong: Array, spec: TensorSpec) -> bool:
    check, right = reference
    return compare(right, wrong, spec, check.tolerance_for(spec, right)) is not None


def _is_float(array: Array) -> bool:
    return array.dtype.kind not in "iub"
