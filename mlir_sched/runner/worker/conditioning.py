"""The difference that rounding explains in ill-conditioned results, element by element.

A tolerance counts roundings, and does not know that a saturated softmax, say, turns a difference of two large numbers
into a factor. How sensitive an element is shows in how far roundings of the inputs move it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mlir_sched.runner.checks.inputs import PROBES
from mlir_sched.runner.worker.comparison import deviations
from mlir_sched.tensors.element_types import Array

ROUNDINGS = 16.0
"""Multiple of the movement of a result under one rounding of every input that the roundings of all ops may move it.

Measured with numpy on a transformer's layer whose softmax is saturated (logits of 770): one rounding of the inputs
moves the result by 9e-5, and f32 and f64 differ by 3e-4 to 6e-4, by the order of additions; two programs may differ
twice as much."""
SPREAD = 8.0
"""Factor on the root mean square of an element's movements, of which a few say little.

The ratio of a normal variable to the root mean square of 8 others has Student's distribution with 8 degrees of freedom:
a difference that is normal with a standard deviation of ten roundings, about the largest of the measurement above,
exceeds the bound with a probability of 1e-6."""
MOST_MOVED = 1e-2
"""Most that an element may differ for this reason: a result that rounding moves further says nothing."""


def explained_by_rounding(probes: Callable[[int], Sequence[Array]], references: Sequence[Array]) -> list[Array]:
    """Return how far each element of each result may be off, relative as in ``Tolerance``; in one dimension each.

    An element that rounding of the inputs does not move may not differ at all for this reason, however far the elements
    beside it are moved.

    Args:
        probes: Returns the results of the right program on inputs that are rounded at random, the same for equal
            numbers.
        references: Its results on the inputs themselves.
    """
    squares = [np.zeros(reference.size) for reference in references]
    for number in range(PROBES):
        for total, reference, moved in zip(squares, references, probes(number), strict=True):
            total += deviations(reference, moved) ** 2
    return [np.minimum(MOST_MOVED, ROUNDINGS * SPREAD * np.sqrt(total / PROBES)) for total in squares]
