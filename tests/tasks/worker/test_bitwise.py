"""The ends of bitwise functions, compared with all results of small integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import combinations_with_replacement, product

import pytest

from mlir_sched.tasks.worker.integers.bitwise import Ends, and_ends, or_ends, signed, xor_ends

FUNCTIONS = [(and_ends, operator.and_), (or_ends, operator.or_), (xor_ends, operator.xor)]


@pytest.mark.parametrize(("ends", "function"), FUNCTIONS)
@pytest.mark.parametrize(("bits", "values"), [(1, range(2)), (4, range(-8, 8))])
def test_the_ends_are_those_of_all_results(
    ends: Ends, function: Callable[[int, int], int], bits: int, values: range
) -> None:
    intervals = list(combinations_with_replacement(values, 2))
    for (a, b), (c, d) in product(intervals, intervals):
        results = [function(x, y) for x in range(a, b + 1) for y in range(c, d + 1)]
        assert signed(ends, (a, b), (c, d), bits) == (min(results), max(results))
