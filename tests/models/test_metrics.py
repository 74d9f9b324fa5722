import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from mlir_sched.models.metrics import average_peak, kendall, pair_accuracy, spearman, top_recall

pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=30)


@given(pairs)
def test_correlations_equal_those_of_scipy(values: list[tuple[int, int]]) -> None:
    scores, throughput = np.array(values, dtype=np.float64).T
    if np.ptp(scores) == 0 or np.ptp(throughput) == 0:
        assert spearman(scores, throughput) == kendall(scores, throughput) == 0.0
        return
    assert spearman(scores, throughput) == pytest.approx(stats.spearmanr(scores, throughput).statistic)
    assert kendall(scores, throughput) == pytest.approx(stats.kendalltau(scores, throughput).statistic)


@given(pairs)
def test_every_metric_stays_in_its_range(values: list[tuple[int, int]]) -> None:
    scores, throughput = np.array(values, dtype=np.float64).T
    for metric in (
        pair_accuracy(scores, throughput),
        top_recall(scores, throughput, 5),
        average_peak(scores, throughput, 5),
    ):
        assert 0.0 <= metric <= 1.0


def test_perfect_and_reversed_scores_get_the_extremes() -> None:
    throughput = np.linspace(0.1, 1.0, 40)
    for scores, sign in ((throughput * 3, 1), (-throughput, -1)):
        assert spearman(scores, throughput) == pytest.approx(sign)
        assert kendall(scores, throughput) == pytest.approx(sign)
        assert pair_accuracy(scores, throughput) == pytest.approx((1 + sign) / 2)
        assert top_recall(scores, throughput, 10) == pytest.approx((1 + sign) / 2)
    assert average_peak(throughput, throughput, 10) == pytest.approx(1.0)
    assert average_peak(-throughput, throughput, 2) == pytest.approx((throughput[0] + throughput[1]) / 2)


def test_ties_and_failures_are_neutral() -> None:
    same = np.zeros(5)
    other = np.arange(5.0)
    assert pair_accuracy(same, other) == pair_accuracy(other, same) == 0.5
    assert average_peak(other, same, 3) == 0.0


def test_empty_inputs_are_no_error() -> None:
    empty = np.empty(0)
    assert spearman(empty, empty) == kendall(empty, empty) == average_peak(empty, empty, 3) == 0.0
    assert pair_accuracy(empty, empty) == 0.5
    assert top_recall(empty, empty, 3) == 1.0
