"""Other pools make believe what a pool reaches; a table says how wrong that was."""

from __future__ import annotations

from dataclasses import replace

import pytest
import rule_ops
from measured_tasks import draws, measured_task, timed
from replayed_run import TARGET, matmul_dispatch

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Figure
from benchmarks.strategies.pools import Pool
from benchmarks.strategies.reach import ALL, Believed, beliefs, results_table
from mlir_sched.payload import Dispatch
from mlir_sched.targets.target import Target


def pool(name: str, dispatch: Dispatch, ratio: float, target: Target = TARGET) -> Pool:
    """Return a pool whose best candidate is so many times as fast as the untuned code."""
    first, second = draws(2, dispatch)
    task = measured_task([timed(first, ratio), timed(second, ratio / 2)], dispatch, target=target)
    return Pool(replace(task, name=name))


ELSEWHERE = replace(TARGET, machine=(("cpu", "another"),))
SMALL, MIDDLE, LARGE = (matmul_dispatch(64, 64, k) for k in (64, 128, 256))
F16 = rule_ops.dispatch(rule_ops.matmul(64, "f16", m=128, n=256))


def test_pools_of_the_same_kind_of_op_on_the_same_machine_say_what_a_pool_reaches() -> None:
    pools = [
        pool("small", SMALL, 8.0),
        pool("middle", MIDDLE, 4.0),
        pool("large", LARGE, 1.6),
        pool("f16", F16, 50.0),
        pool("elsewhere", matmul_dispatch(64, 64, 32), 90.0, ELSEWHERE),
    ]
    small, middle, large = beliefs(pools)
    assert [each.pool for each in (small, middle, large)] == ["small", "middle", "large"]
    assert (small.found, middle.found, large.found) == pytest.approx((1 / 8, 1 / 4, 1 / 1.6))
    assert large.believed == pytest.approx(1 / 2), "both others make as many operations a second"
    assert large.factor == pytest.approx(1.25)
    assert not large.held, "they agree with each other, and are wrong"
    assert middle.factor == pytest.approx(1.0)
    assert middle.held


def test_a_table_has_a_row_per_family_and_one_of_all() -> None:
    found = [
        Believed("a", "products", 0.5, 0.25, False),
        Believed("b", "products", 0.5, 0.5, True),
        Believed("c", "sums", 0.1, 0.8, True),
    ]
    table = results_table(found, Publishing(None, (), "command"))
    rows = dict(table.rows)
    assert [*rows] == ["products", "sums", ALL]
    assert rows["products"][3] == Figure(1.41421, 1.0, 2.0)
    assert rows["products"][4] == Figure(0.5)
    assert rows["sums"][3] == Figure(8.0)
    assert rows[ALL][0] == Figure(3)
    assert table.rows[-1][1][2] == Figure(float(f"{(0.25 * 0.5 * 0.8) ** (1 / 3):.6g}"), 0.25, 0.8)
