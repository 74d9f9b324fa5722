"""What was collected: in whole tables few candidates are as good as the best, and all files together are small."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.corpus.collection import share_near_best, whole_part
from benchmarks.corpus.sets import COLLECTED, NETWORKS, PARTS
from benchmarks.search.simulated_tasks import EFFICIENCY, pools_in, recordings
from mlir_sched.corpus.files import SHIPPED, SUFFIX, files_in, read_task
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space

MOST_NEAR = 0.02
"""Largest share of a table's candidates that may be as good as its best."""
TABLES = [path for path in files_in(COLLECTED) if path.parent.name == "complete"]


def _name(path: Path) -> str:
    return f"{path.parts[-3]} {path.name.removesuffix(SUFFIX)}"


@pytest.mark.parametrize("path", TABLES, ids=_name)
def test_few_candidates_of_a_whole_table_are_as_good_as_its_best(path: Path) -> None:
    task = read_task(path)
    assert task.complete
    assert share_near_best(task) <= MOST_NEAR
    pinned = PARTS[task.name].pinned.items()
    assert all(pinned <= each.trace.values.items() for each in task.measured)


def test_a_machine_with_whole_tables_has_all_of_them() -> None:
    tables = {path.parent: {each.name.removesuffix(SUFFIX) for each in path.parent.iterdir()} for path in TABLES}
    assert tables
    assert all(names == PARTS.keys() for names in tables.values())


@pytest.mark.landing
@pytest.mark.parametrize("path", TABLES, ids=_name)
def test_a_whole_table_has_all_candidates_of_its_part(path: Path) -> None:
    task = read_task(path)
    space = DesignSpace(Space.default(task.target), task.dispatch, task.target)
    wanted = {trace.key for trace in whole_part(task.name, PARTS[task.name], space)}
    assert {space.repaired(trace).key for trace in task.traces} == wanted, "equal candidates count once"


def test_simulations_find_pools_of_all_their_families_and_recorded_networks() -> None:
    assert all(len(pools) >= 4 for pools in pools_in(SHIPPED).values())
    assert pools_in(SHIPPED).keys() == EFFICIENCY.keys()
    for network in NETWORKS:
        for tasks in recordings(COLLECTED, network):
            assert sum(task.trials for task in tasks) >= 500
            assert all(task.spent[-1] > task.trials / 100 for task in tasks)
        assert recordings(COLLECTED, network)


def test_files_are_small() -> None:
    shipped, others = (sum(path.stat().st_size for path in files_in(folder)) for folder in (SHIPPED, COLLECTED))
    assert shipped < 1_000_000
    assert shipped + others < 2_000_000
