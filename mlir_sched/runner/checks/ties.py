"""Integers that are rounded from floating point: how many of them may differ by one between two right programs.

A value ``v`` before its rounding to an integer differs between two right programs by at most ``d``: the tolerance of
the floating-point arithmetic times the magnitude of ``v``. The two integers differ only where the boundary between them
(a tie, or a whole number where digits are cut off) lies between the two values. Boundaries lie one step apart, so that
this happens with probability ``d`` at most: the fractional part of ``v`` is as good as uniform.

By Chernoff's bound a sum of independent 0s and 1s of mean ``m`` reaches ``k > m`` with a probability below
``exp(k - m - k ln(k / m))``. A result in which more elements differ than this leaves likely is wrong, and so is one in
which an element differs by more than one. Integers computed by integer arithmetic have no tolerance and must be equal.

In a program of several quantised layers a step in one of the ``K`` inputs of a sum moves the sum by about
``1 / sqrt(K)`` of its own spread, which is that of the inputs in steps. Of the sums, a share ``p K`` at most is moved
where a share ``p`` of the inputs is, so that the next layer differs in a share of ``p sqrt(K)``; and never in more than
``sqrt(p)``, as the moves of a sum have random signs.

Source: Boucheron, Lugosi & Massart, "Concentration Inequalities" (2013), section 2.2 (Chernoff's bound of Poisson
variables).
"""

import math
from collections.abc import Iterable

import numpy as np

from mlir_sched.payload import ELEMENT_BITS, TensorSpec
from mlir_sched.runner.checks.blocks import blocks
from mlir_sched.tensors.element_types import Array

CHANCE = 1e-9
"""Accepted probability that the results of two right programs differ in more elements."""

LARGEST_SHARE = 0.5
"""Most that two right programs may differ in, as a share: as much as between two roundings that have nothing in common
but the two integers around the value."""

_BYTE = 8


def most_differing(reference: Array, spec: TensorSpec, relative: float) -> int:
    """Return how many elements of a right result may differ from the reference by one.

    Args:
        reference: Integers that were rounded from floating point.
        relative: Largest relative difference of the values before rounding.
    """
    mean = sum(float(_shares(block, spec, relative).sum()) for block in blocks(reference))
    return min(reference.size, exceeded_by_chance(mean))


def exceeded_by_chance(mean: float) -> int:
    """Return the number that a sum of independent 0s and 1s of a mean exceeds with a chance below :data:`CHANCE`."""
    if mean == 0.0:
        return 0
    number = math.floor(mean) + 1
    while number * math.log(number / mean) - number + mean < -math.log(CHANCE):
        number += max(1, number // 1000)
    return number - 1


def layered_share(layers: Iterable[tuple[float, int]]) -> float:
    """Return the share of integers that may differ by one behind several layers.

    Args:
        layers: Of each layer in order, the share that its own rounding makes differ, and the terms of its sums.
    """
    share = 0.0
    for own, terms in layers:
        share = min(LARGEST_SHARE, own + min(math.sqrt(share), share * math.sqrt(terms)))
    return share


def largest_magnitude(element_type: str) -> float:
    """Return the largest magnitude of a value before its rounding to a type, and before its zero point is added.

    Values of wide types are taken as they are: 0.
    """
    bits = ELEMENT_BITS[element_type]
    return 2.0**bits if bits <= _BYTE else 0.0


def _shares(reference: Array, spec: TensorSpec, relative: float) -> Array:
    shares: Array = relative * np.maximum(np.abs(reference), largest_magnitude(spec.element_type))
    return np.minimum(shares, LARGEST_SHARE)
