"""The simulation of the task scheduler: it is repeatable, and similarity is worth having where tasks are alike."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from measured_tasks import DISPATCH, UNTUNED_S, draws, failed, measured_task, timed

from benchmarks.corpus.families import FAMILIES
from benchmarks.search.network_tasks import NETWORKS
from benchmarks.search.simulated_tasks import (
    EFFICIENCY,
    SCENARIOS,
    Oracle,
    Pool,
    Pools,
    SimulatedTask,
    pools_in,
    recordings,
    simulated,
)
from benchmarks.search.task_scheduling import SECONDS, TRIALS_PER_TASK, Cell, compare, excess, replayed, search
from mlir_sched.corpus import Origin
from mlir_sched.corpus.files import write_task
from mlir_sched.errors import UserError
from mlir_sched.search import Demand, GradientScheduler, TaskProgress

SEEDS = 20


def made_up_pools(count: int) -> Pools:
    """Return a pool per family: times over the best's are 1 / sqrt(u) for uniform u, so that few are good."""
    found = {}
    for number, family in enumerate(EFFICIENCY):
        drawn = np.random.default_rng(number).random(count) ** -0.5
        found[family] = [Pool(drawn / drawn.min(), np.array([]))]
    return found


POOLS = made_up_pools(200)


@pytest.fixture(scope="module")
def cells() -> dict[str, list[Cell]]:
    """The results of ResNet-50 in the scenarios with most and with least to learn from similar tasks."""
    return {
        scenario: compare(scenario, "ResNet-50", POOLS, SEEDS)
        for scenario in ("alike", "few good candidates", "not alike")
    }


def test_repeated_simulations_are_the_same(cells: dict[str, list[Cell]]) -> None:
    assert compare("alike", "ResNet-50", POOLS, SEEDS) == cells["alike"]


@pytest.mark.parametrize("scenario", ["alike", "few good candidates"])
def test_similar_tasks_save_time_where_trials_are_few_and_cost_none_later(
    cells: dict[str, list[Cell]], scenario: str
) -> None:
    changes = [math.log(cell.change) for cell in cells[scenario]]
    assert np.mean(changes[:3]) < -0.002
    assert max(changes) < 0.002


def test_where_tasks_are_not_alike_similarity_costs_next_to_nothing(cells: dict[str, list[Cell]]) -> None:
    assert np.mean([math.log(cell.change) for cell in cells["not alike"]]) < 0.01


def test_one_candidate_per_dispatch_is_spent_where_it_gains_most(cells: dict[str, list[Cell]]) -> None:
    first = [cells[scenario][0] for scenario in ("alike", "not alike")]  # 2.3 where every dispatch has a first round
    assert all(cell.spent == 1 and max(cell.without, cell.with_similarity) < 1.7 for cell in first)


def test_a_search_spends_its_trials_and_ends_at_the_best_that_there_is() -> None:
    tasks = simulated(NETWORKS["BERT-base"](), SCENARIOS["alike"], made_up_pools(40), 0)
    whole = 40 * len(tasks)
    courses = search(tasks, GradientScheduler(), whole, 8)
    assert [sum(course) for course in courses] == sorted(sum(course) for course in courses)
    assert courses[-1] == [40] * len(tasks)
    times = [excess(tasks, courses, per * len(tasks)) for per in TRIALS_PER_TASK]
    assert times == sorted(times, reverse=True)
    assert excess(tasks, courses, whole) == 1.0


def test_a_dispatch_has_the_random_candidates_of_a_pool_before_those_that_a_search_chose() -> None:
    pools = {family: [Pool(np.array([3.0, math.inf, 5.0]), np.array([1.0, 2.0]))] for family in EFFICIENCY}
    tasks = simulated(NETWORKS["BERT-base"](), SCENARIOS["alike"], pools, 0)
    for task in tasks:
        assert task.best_s[2] == pytest.approx(3 * task.best_s[3])
        assert task.best_s[3] == task.best_s[4]
        assert task.spent.tolist() == [1, 2, 3, 4, 5]


def test_pools_of_all_machines_are_found_by_family(tmp_path: Path) -> None:
    first, second, third = draws(3)
    task = measured_task([timed(first, 2.0), failed(second), timed(third, 4.0, Origin.MODEL)])
    for family, programs in FAMILIES.items():
        for machine in ("one", "two"):
            if family in EFFICIENCY and (family, machine) != ("softmax", "two"):
                (folder := tmp_path / machine / "pools").mkdir(parents=True, exist_ok=True)
                write_task(folder / f"{min(programs)}.jsonl.gz", task)
    pools = pools_in(tmp_path)
    assert {family: len(found) for family, found in pools.items()} == dict.fromkeys(EFFICIENCY, 2) | {"softmax": 1}
    assert pools["softmax"][0].drawn.tolist() == [2.0]
    assert pools["softmax"][0].chosen.tolist() == [math.inf, 1.0]
    for path in tmp_path.rglob("softmax*"):
        path.unlink()
    with pytest.raises(UserError, match="has no pools of softmax"):
        pools_in(tmp_path)


def test_recorded_networks_are_replayed_by_the_seconds_that_their_candidates_took(tmp_path: Path) -> None:
    (folder := tmp_path / "machine" / "courses").mkdir(parents=True)
    for name, ratios, work_s, weight in (("heavy", (1.5, 2.0), 1.0, 3), ("light", (1.0, 10.0), 2.0, 1)):
        times = [timed(trace, ratios[number // 8], Origin.MODEL) for number, trace in enumerate(draws(16))]
        measured = [replace(each, work_s=work_s) for each in times]
        write_task(folder / f"net-{name}.jsonl.gz", replace(measured_task(measured), weight=weight))
    ((heavy, light),) = recordings(tmp_path, "net")
    assert (heavy.weight, light.weight, heavy.untuned_s) == (3, 1, UNTUNED_S)
    assert heavy.demand.operations == DISPATCH.scalar_ops
    assert heavy.demand.moved_bytes == 4 * (64 * 128 + 128 * 96 + 64 * 96)
    assert (heavy.spent[-1], light.spent[-1]) == (16, 32)
    found = replayed("net", [[heavy, light]], 8)
    assert [cell.spent for cell in found] == list(SECONDS)
    best_s = 3 / 2.0 + 1 / 10.0
    after_first = (3 / 1.5 + 1) / best_s
    after_10_s = found[SECONDS.index(10)]
    assert after_10_s.with_similarity == pytest.approx(after_first, rel=1e-3)
    assert after_10_s.error == 0
    assert found[-1].with_similarity == pytest.approx(1.0)
    assert recordings(tmp_path, "another") == []


def test_an_oracle_goes_where_most_is_saved_for_what_it_costs_however_many_candidates_that_takes() -> None:
    def task(best_s: list[float], cost: float, weight: int = 1) -> SimulatedTask:
        spent = cost * np.arange(1.0, len(best_s) + 1)
        return SimulatedTask(Demand("", 1.0, 1.0), weight, 10.0, np.array(best_s), spent)

    late, soon, dear = tasks = task([10, 10, 1, 1], 1.0), task([9, 8, 8, 8], 1.0), task([1, 1, 1, 1], 4.0)
    assert [each.best_gain(0) for each in tasks] == [3.0, 1.0, 2.25]
    assert (late.best_gain(2), late.best_gain(3), soon.best_gain(2)) == (9.0, 0.0, 0.0)
    assert task([math.inf, 20, 5], 1.0, weight=3).best_gain(0) == 5.0
    oracle = Oracle(tasks)
    assert oracle.next_task([TaskProgress(1.0)] * 3) == 0
    assert oracle.next_task([TaskProgress(1.0, (1.0,), (3,)), TaskProgress(1.0), TaskProgress(1.0)]) == 2
    done = TaskProgress(1.0, (1.0,), (4,), exhausted=True)
    assert oracle.next_task([done] * 3) is None
    assert dear.best_gain(3) == 0.0


def test_no_scheduler_is_better_than_one_that_knows_every_course(cells: dict[str, list[Cell]]) -> None:
    for found in cells.values():
        for cell in found:
            assert cell.oracle <= 1.001 * min(cell.without, cell.with_similarity)
    assert cells["few good candidates"][1].oracle < 0.98 * cells["few good candidates"][1].with_similarity
