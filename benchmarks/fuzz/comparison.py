"""How the results of a compiled program differ from NumPy's by more than rounding explains."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.fuzz.draft import Array, rounded
from benchmarks.fuzz.programs import RandomProgram
from benchmarks.mlir_text import Value
from mlir_sched.runner.checks.rounding import SAFETY, machine_epsilon

SAMPLES = 16
"""Evaluations with random errors. The largest of 16 normal deviations is above 0.7 standard deviations in all but 1 of
40,000 elements, and usually about 2."""
WIDENING = 2.0
"""Factor on the errors, and once more on the largest deviation: together the factor for safety of
:mod:`mlir_sched.runner.checks.rounding`."""


@dataclass(frozen=True)
class Expected:
    """What right code returns for a program's inputs.

    Attributes:
        outputs: The outputs.
        right: Their elements as NumPy computes them, in f64.
        allowed: How far an element may be from that.
    """

    outputs: tuple[Value, ...]
    right: tuple[Array, ...]
    allowed: tuple[Array, ...]

    def difference(self, found: Sequence[Array]) -> str:
        """Return the first output that differs by more than rounding explains; empty when none does."""
        for position, (value, right, allowed) in enumerate(zip(self.outputs, self.right, self.allowed, strict=True)):
            own = rounded(found[position], value.kind).astype(np.float64)
            wrong = ~(np.abs(own - right) <= allowed)
            if wrong.any():
                first = int(np.argmax(wrong))
                return (
                    f"output {position}: {int(wrong.sum())} of {wrong.size} elements of {value.kind}, e.g. "
                    f"{own.flat[first]:g} instead of {right.flat[first]:g}, at most {allowed.flat[first]:g} apart"
                )
        return ""


def expected(program: RandomProgram) -> Expected:
    """Return what right code returns for a program's inputs.

    What rounding explains is the largest deviation of evaluations in which every step reads its floats with random
    errors: the roundings of a step by the rules of :mod:`mlir_sched.runner.checks.rounding`. Cancellation widens what
    is allowed, a float near a tie may become either integer, and integers that no float decides have to be equal.

    Source: Parker, "Monte Carlo Arithmetic: exploiting randomness in floating-point arithmetic" (1997).
    """
    exact = program.evaluate()
    sampled = [program.evaluate(np.random.default_rng(seed), WIDENING) for seed in range(SAMPLES)]
    rights, bounds = list[Array](), list[Array]()
    for position, value in enumerate(program.outputs):
        right = exact[position].astype(np.float64)
        deviations = [np.abs(sample[position].astype(np.float64) - right) for sample in sampled]
        rights.append(right)
        bounds.append(WIDENING * np.max(deviations, axis=0) + SAFETY * machine_epsilon(value.compiled) * _scale(right))
    return Expected(program.outputs, tuple(rights), tuple(bounds))


def difference(program: RandomProgram, found: Sequence[Array]) -> str:
    """Return the first output that differs by more than rounding explains; empty when none does."""
    return expected(program).difference(found)


def _scale(right: Array) -> Array:
    """Return what a result's own rounding is relative to: an element, or the root mean square where that is larger."""
    return np.asarray(np.maximum(np.abs(right), np.sqrt(np.mean(right**2))))
