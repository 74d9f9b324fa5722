import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from mlir_sched.models.metrics import pair_accuracy

pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=30)


@given(pairs)
@example([(0, 2), (0, 2), (1, 0), (1, 3), (2, 2), (2, 2)])
def test_the_accuracy_is_that_of_somers_d(values: list[tuple[int, int]]) -> None:
    scores, throughput = np.array(values, dtype=np.float64).T
    if np.ptp(scores) == 0 or np.ptp(throughput) == 0:
        assert pair_accuracy(scores, throughput) == 0.5
        return
    with np.errstate(invalid="ignore"):  # its p-value, which nobody asks for, may be 0 / 0
        expected = (1 + stats.somersd(throughput, scores).statistic) / 2
    assert pair_accuracy(scores, throughput) == pytest.approx(expected)


def test_perfect_and_reversed_scores_get_the_extremes() -> None:
    throughput = np.linspace(0.1, 1.0, 40)
    assert pair_accuracy(throughput * 3, throughput) == 1.0
    assert pair_accuracy(-throughput, throughput) == 0.0


def test_ties_are_neutral() -> None:
    same, other = np.zeros(5), np.arange(5.0)
    assert pair_accuracy(same, other) == pair_accuracy(other, same) == 0.5


def test_no_rows_are_no_error() -> None:
    assert pair_accuracy(np.empty(0), np.empty(0)) == 0.5
