"""What others make believe that a task reaches: the best of their rates, as uncertain as they are about each other."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mlir_sched.models.cost_model import COVERAGE
from mlir_sched.search import Demand, Reach, Shown
from mlir_sched.search.reach import LEAST

TASK = Demand("products", 2e9, 2e6)


def shown(operations: float, seconds: float, untuned_s: float = 1.0) -> Shown:
    """Return what a task has shown that moves a byte per 1,000 operations."""
    return Shown(Demand("products", operations, operations / 1000), untuned_s, seconds)


def test_a_task_is_believed_to_come_to_the_best_rate_of_the_others() -> None:
    belief = Reach.of(TASK, 0.5, [shown(1e9, 0.1), shown(4e9, 0.2), shown(1e9, 0.4)])
    assert belief is not None
    assert math.exp(belief.mean) == pytest.approx(0.1 / 0.5), "2e9 operations at 2e10 a second, for 0.5 s untuned"
    assert belief.others == 3
    moving = Reach.of(Demand("products", 1.0, 8e6), 1.0, [shown(1e9, 0.1), shown(4e9, 0.2)])
    assert moving is not None
    assert math.exp(moving.mean) == pytest.approx(0.4), "8e6 bytes at 2e7 a second"


def test_others_that_agree_are_believed_more_than_others_that_do_not() -> None:
    alike = Reach.of(TASK, 1.0, [shown(1e9, 0.1), shown(2e9, 0.2), shown(4e9, 0.4)])
    unlike = Reach.of(TASK, 1.0, [shown(1e9, 0.1), shown(2e9, 0.4), shown(4e9, 0.2)])
    assert alike is not None
    assert unlike is not None
    assert alike.spread == LEAST
    assert unlike.spread == pytest.approx(math.sqrt(4 / 3 * np.mean(np.log([2.0, 4.0, 2.0]) ** 2)))


def test_slow_candidates_show_that_the_untuned_code_stays() -> None:
    slow = shown(1e9, 3.0, untuned_s=1.0)
    assert slow.log_ratio == 0.0
    belief = Reach.of(TASK, 1e-3, [shown(1e9, 0.1), shown(1e9, 0.1)])
    assert belief is not None
    assert belief.mean == 0.0


@pytest.mark.parametrize("others", [[], [shown(1e9, 0.1)]])
def test_nothing_is_believed_of_what_fewer_than_two_have_shown(others: list[Shown]) -> None:
    assert Reach.of(TASK, 1.0, others) is None


def test_a_belief_is_wrong_by_a_logarithm_and_holds_inside_of_its_interval() -> None:
    belief = Reach(mean=math.log(0.5), spread=0.1, others=2)
    assert belief.error(shown(1e9, 0.6)) == pytest.approx(math.log(1.2))
    assert [belief.holds(shown(1e9, seconds)) for seconds in (0.44, 0.45, 0.56, 0.57)] == [True, True, True, False]


def test_intervals_hold_as_often_as_they_say_where_tasks_scatter() -> None:
    rng, held = np.random.default_rng(0), list[bool]()
    for _ in range(400):
        operations = np.exp(rng.normal(22.0, 1.0, 6))
        seconds = operations / 1e10 * np.exp(rng.normal(0.0, 0.3, 6))
        *others, own = (Shown(Demand("", work, 1.0), 1e3, took) for work, took in zip(operations, seconds, strict=True))
        belief = Reach.of(own.demand, own.untuned_s, others)
        assert belief is not None
        held.append(belief.holds(own))
    assert abs(np.mean(held) - COVERAGE) < 0.1
