import numpy as np
import pytest

from mlir_sched.runner.statistics import (
    CONFIDENCE,
    FEWEST_VALUES,
    Interval,
    is_decided,
    likely_spread,
    median_interval,
    median_ranks,
    ratio_interval,
)


def test_six_values_are_the_fewest_with_95_percent_coverage() -> None:
    assert median_ranks(FEWEST_VALUES - 1)[1] < CONFIDENCE
    assert median_ranks(FEWEST_VALUES) == (0, 1 - 2 / 2**6)


@pytest.mark.parametrize(("count", "rank"), [(8, 0), (9, 1), (20, 5), (30, 9), (50, 17), (100, 39)])
def test_ranks_are_those_of_the_binomial_table(count: int, rank: int) -> None:
    """The sign-test table: ranks from 1 are 1, 2, 6, 10, 18 and 40 (Conover, Practical Nonparametric Statistics)."""
    assert median_ranks(count)[0] == rank


@pytest.mark.parametrize("count", range(6, 200, 13))
def test_coverage_reaches_the_confidence_and_one_rank_further_would_not(count: int) -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    rank, coverage = median_ranks(count)
    assert coverage == pytest.approx(1 - 2 * scipy_stats.binom.cdf(rank, count, 0.5))
    assert coverage >= 0.95
    assert 1 - 2 * scipy_stats.binom.cdf(rank + 1, count, 0.5) < 0.95


def test_no_values_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        median_interval([])


def test_interval_covers_the_true_median_of_a_skewed_distribution_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    draws = rng.lognormal(0.0, 1.0, (2000, 25))  # true median 1
    intervals = [median_interval(row) for row in draws]
    covered = np.mean([i.low <= 1.0 <= i.high for i in intervals])
    assert 0.94 <= covered <= 0.99


def test_one_outlier_moves_neither_median_nor_interval() -> None:
    values = [1.0 + 0.001 * i for i in range(20)]
    spoilt = [*values[:-1], 1e6]
    assert median_interval(spoilt).median == median_interval(values).median
    assert median_interval(spoilt).high == median_interval(values).high


def test_ratio_of_pairs_cancels_what_slows_both() -> None:
    rng = np.random.default_rng(1)
    drift = rng.uniform(1.0, 2.0, 40)
    ratio = ratio_interval(list(3.0 * drift), list(1.5 * drift))
    assert (ratio.low, ratio.median, ratio.high) == pytest.approx((2.0, 2.0, 2.0))


def test_ratio_needs_pairs() -> None:
    with pytest.raises(ValueError, match="equally many"):
        ratio_interval([1.0, 2.0], [1.0])


def test_overlapping_or_uncertain_intervals_are_not_decided() -> None:
    first, second = Interval(1.0, 0.9, 1.1, 0.96, 8), Interval(1.3, 1.2, 1.4, 0.96, 8)
    assert is_decided(first, second)
    assert is_decided(second, first)
    assert not is_decided(first, Interval(1.3, 1.05, 1.4, 0.96, 8))
    assert not is_decided(first, Interval(1.3, 1.2, 1.4, 0.5, 2))


def test_equal_distributions_are_rarely_called_decided() -> None:
    rng = np.random.default_rng(2)
    draws = rng.lognormal(0.0, 0.1, (1000, 2, 15))
    assert np.mean([is_decided(median_interval(a), median_interval(b)) for a, b in draws]) < 0.02


@pytest.mark.parametrize(("count", "rank"), [(5, 0), (6, 1), (10, 1), (11, 2), (33, 7)])
def test_of_more_spreads_more_of_the_widest_are_left_out(count: int, rank: int) -> None:
    """For j = 7 of 32 others: 7 * 8 / (33 * 34) is just below 5 %."""
    spreads = [1.0 + 0.01 * number for number in range(count)]
    assert likely_spread(spreads) == (spreads[-rank] if rank else np.inf)
    assert likely_spread(spreads[::-1]) == likely_spread(spreads)


@pytest.mark.parametrize("others", [5, 12, 40])
@pytest.mark.parametrize("skewed", [False, True])
def test_two_values_are_seldom_both_off_by_more_than_the_likely_spread(others: int, skewed: bool) -> None:
    rng = np.random.default_rng(0)
    off = np.zeros(2)
    runs = 2000
    for _ in range(runs):
        draws = rng.lognormal(0.0, 0.05, (others + 1, 2))
        values = np.exp(np.maximum(np.log(draws) * 3, np.log(draws))) if skewed else draws  # the median stays 1
        spread = likely_spread(list(values.max(axis=1) / values.min(axis=1)))
        off += values[0].max() * spread < 1.0, values[0].min() / spread > 1.0
    assert max(off) / runs <= 0.05
