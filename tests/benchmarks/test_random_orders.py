"""Random search over all orders of some candidates is what these orders show one by one."""

from __future__ import annotations

from itertools import combinations, permutations
from statistics import geometric_mean, median_low

import pytest

from benchmarks.search.random_orders import draws_to_reach, expected_best

SECONDS = (5.0, 1.0, 2.0, 7.0, 3.0)


@pytest.mark.parametrize("count", [1, 2, 4, 5])
def test_the_mean_over_all_orders_is_that_of_all_choices(count: int) -> None:
    assert expected_best(SECONDS, count) == pytest.approx(geometric_mean(map(min, combinations(SECONDS, count))))


@pytest.mark.parametrize("limit", [1.0, 2.5, 5.0, 7.0])
def test_the_median_over_all_orders_is_that_of_the_orders(limit: float) -> None:
    draws = [1 + [each <= limit for each in order].index(True) for order in permutations(SECONDS)]
    assert draws_to_reach(SECONDS, limit) == median_low(draws)


def test_a_limit_that_no_candidate_reaches_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no candidate takes at most 0\.5 s"):
        draws_to_reach(SECONDS, 0.5)
