"""The benchmark of the model of a GPU's time, on candidates that were measured on a GPU."""

from __future__ import annotations

from math import inf

import pytest

from benchmarks.devices.time_model import H200, SUFFIX, Ranking, ranking_of
from benchmarks.search.measured_space import read_measured
from mlir_sched.targets import absent_target


def test_ranks_are_compared_and_refused_code_is_the_last_choice() -> None:
    ranking = Ranking("p", [4.0, 1.0, 2.0, 3.0], [5.0, inf, 1.0, 2.0])
    assert ranking.correlation == pytest.approx(1.0)
    assert ranking.excess(1) == 2.0
    assert ranking.excess(4) == 1.0


@pytest.mark.nightly
def test_measured_candidates_are_compiled_assembled_and_ranked() -> None:
    file = H200 / f"matmul_4096_f16{SUFFIX}"
    ranking = ranking_of(file, absent_target("cuda:sm_90"))
    assert len(ranking.measured_s) == len(read_measured(file).points) > 20
    assert ranking.correlation > 0.9
    assert ranking.excess(4) < 1.1
