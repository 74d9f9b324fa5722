"""How the results of a compiled program differ from NumPy's by more than rounding explains."""

from collections.abc import Sequence

import numpy as np

from benchmarks.fuzz.draft import Array, rounded
from benchmarks.fuzz.programs import RandomProgram
from mlir_sched.runner.checks.rounding import SAFETY, machine_epsilon

SAMPLES = 16
"""Evaluations with random errors, at most. The largest of 16 normal deviations is above 0.7 standard deviations in all
but 1 of 40,000 elements, and usually about 2."""
WIDENING = 2.0
"""Factor on the errors, and once more on the largest deviation: together the factor for safety of
:mod:`mlir_sched.runner.checks.rounding`."""


class Expected:
    """What right code returns for a program's inputs.

    What rounding explains is the largest deviation of evaluations in which every step reads its floats with random
    errors: the roundings of a step by the rules of :mod:`mlir_sched.runner.checks.rounding`. Cancellation widens what
    is allowed, a float near a tie may become either integer, and integers that no float decides have to be equal. The
    largest deviation only grows with further evaluations, so these are made as long as something differs by more.

    Source: Parker, "Monte Carlo Arithmetic: exploiting randomness in floating-point arithmetic" (1997).
    """

    def __init__(self, program: RandomProgram) -> None:
        self._program = program
        self._right = [array.astype(np.float64) for array in program.evaluate()]
        self._deviations = [np.zeros(array.shape) for array in self._right]
        self._samples = 0

    def difference(self, found: Sequence[Array]) -> str:
        """Return the first output that differs by more than rounding explains; empty when none does."""
        while (text := self._difference(found)) and self._samples < SAMPLES:
            self._sample()
        return text

    def _difference(self, found: Sequence[Array]) -> str:
        """Return the first output that differs by more than the evaluations so far explain; empty when none does."""
        for position, (value, right) in enumerate(zip(self._program.outputs, self._right, strict=True)):
            own = rounded(found[position], value.kind).astype(np.float64)
            allowed = WIDENING * self._deviations[position] + SAFETY * machine_epsilon(value.compiled) * _scale(right)
            wrong = ~(np.abs(own - right) <= allowed)
            if wrong.any():
                first = int(np.argmax(wrong))
                return (
                    f"output {position}: {int(wrong.sum())} of {wrong.size} elements of {value.kind}, e.g. "
                    f"{own.flat[first]:g} instead of {right.flat[first]:g}, at most {allowed.flat[first]:g} apart"
                )
        return ""

    def _sample(self) -> None:
        """Evaluate the program once more with random errors."""
        sample = self._program.evaluate(np.random.default_rng(self._samples), WIDENING)
        for position, right in enumerate(self._right):
            deviation = np.abs(sample[position].astype(np.float64) - right)
            self._deviations[position] = np.maximum(self._deviations[position], deviation)
        self._samples += 1


def difference(program: RandomProgram, found: Sequence[Array]) -> str:
    """Return the first output that differs by more than rounding explains; empty when none does."""
    return Expected(program).difference(found)


def _scale(right: Array) -> Array:
    """Return what a result's own rounding is relative to: an element, or the root mean square where that is larger."""
    return np.asarray(np.maximum(np.abs(right), np.sqrt(np.mean(right**2))))
