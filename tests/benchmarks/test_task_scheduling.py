"""The simulation of the task scheduler: it is repeatable, and similarity is worth having where tasks are alike."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.search.network_tasks import NETWORKS
from benchmarks.search.task_scheduling import (
    EFFICIENCY,
    SCENARIOS,
    TRIALS_PER_TASK,
    Cell,
    compare,
    excess,
    search,
    simulated,
    slowdowns,
)
from mlir_sched.search import GradientOptions

SEEDS = 4


@pytest.fixture(scope="module")
def cells() -> dict[str, list[Cell]]:
    """The results of ResNet-50 in the scenarios with most and with least to learn from similar tasks."""
    return {
        scenario: compare(scenario, "ResNet-50", SEEDS) for scenario in ("alike", "few good candidates", "not alike")
    }


def test_repeated_simulations_are_the_same(cells: dict[str, list[Cell]]) -> None:
    assert compare("alike", "ResNet-50", SEEDS) == cells["alike"]


@pytest.mark.parametrize("scenario", ["alike", "few good candidates"])
def test_similar_tasks_save_time_where_trials_are_few_and_cost_none_later(
    cells: dict[str, list[Cell]], scenario: str
) -> None:
    changes = [math.log(cell.change) for cell in cells[scenario]]
    assert np.mean(changes[:3]) < -0.002
    assert max(changes) < 0.002


def test_where_tasks_are_not_alike_similarity_costs_next_to_nothing(cells: dict[str, list[Cell]]) -> None:
    assert np.mean([math.log(cell.change) for cell in cells["not alike"]]) < 0.003


def test_one_candidate_per_dispatch_is_spent_where_it_gains_most(cells: dict[str, list[Cell]]) -> None:
    first = [cells[scenario][0] for scenario in ("alike", "not alike")]  # 2.3 where every dispatch has a first round
    assert all(cell.trials == 1 and max(cell.without, cell.with_similarity) < 1.7 for cell in first)


def test_a_search_spends_its_trials_and_ends_at_the_best_that_there_is() -> None:
    tables = {name: slowdowns(name)[:40] for name in EFFICIENCY}
    tasks = simulated(NETWORKS["BERT-base"](), SCENARIOS["alike"], tables, 0)
    whole = 40 * len(tasks)
    courses = search(tasks, GradientOptions(), whole, 8)
    assert [sum(course) for course in courses] == sorted(sum(course) for course in courses)
    assert courses[-1] == [40] * len(tasks)
    times = [excess(tasks, courses, per * len(tasks)) for per in TRIALS_PER_TASK]
    assert times == sorted(times, reverse=True)
    assert excess(tasks, courses, whole) == 1.0
