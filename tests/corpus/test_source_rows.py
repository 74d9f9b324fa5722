"""From how many candidates of which sources a model learns, where there are few sources and where there are many."""

from __future__ import annotations

import pytest
import rule_ops
from measured_tasks import draws, measured_task, timed
from replayed_run import TARGET, matmul_dispatch

from mlir_sched.corpus import Corpus, MeasuredTask
from mlir_sched.corpus.choosing import (
    FEW,
    LEAST_ROWS,
    ROWS_PER_RUN,
    ROWS_PER_SOURCE,
    chosen_sources,
    divided,
)
from mlir_sched.corpus.sources import BEST, SOURCES_PER_TASK, Asked, Place, Source
from mlir_sched.payload import Dispatch

MEASURED = list(map(timed, draws(8 * LEAST_ROWS)))
OTHER = rule_ops.dispatch(rule_ops.matmul(64, "f16", m=128, n=256))


def source(name: str, count: int = len(MEASURED), dispatch: Dispatch | None = None) -> Source:
    """Return a source with some candidates, by default one of products; which is of no interest here."""
    task = measured_task(MEASURED[:count], dispatch or matmul_dispatch(64, 96, 128), key=name)
    return Source(Place.USER, task)


def ranked(tasks: int, *, count: int = len(MEASURED)) -> list[list[Source]]:
    """Return the sources of tasks that have none in common."""
    return [[source(f"{task} {rank}", count) for rank in range(SOURCES_PER_TASK)] for task in range(tasks)]


def test_few_sources_teach_with_all_that_they_have() -> None:
    (sources,) = ranked(1)
    assert list(divided([sources]).items()) == [(each, len(MEASURED)) for each in sources]
    assert divided([]) == divided([[]]) == {}


@pytest.mark.parametrize("tasks", [2, 10, 60])
def test_where_there_are_many_some_teach_with_enough_and_the_farthest_with_nothing(tasks: int) -> None:
    asked = ranked(tasks)
    rows = divided(asked)
    assert sum(rows.values()) == ROWS_PER_RUN
    assert LEAST_ROWS <= min(rows.values()) <= max(rows.values()) <= ROWS_PER_SOURCE
    assert len(rows) == min(SOURCES_PER_TASK * tasks, ROWS_PER_RUN // LEAST_ROWS)
    ranks = [rank for sources in asked for rank, each in enumerate(sources) if each in rows]
    left_out = [rank for sources in asked for rank, each in enumerate(sources) if each not in rows]
    assert max(ranks) <= min(left_out, default=SOURCES_PER_TASK)


def test_sources_with_few_candidates_teach_with_all_of_them_the_more_of_them() -> None:
    rows = divided(ranked(60, count=3))
    assert set(rows.values()) == {3}
    assert len(rows) == ROWS_PER_RUN // 3


def test_a_source_of_many_tasks_comes_before_nearer_ones_of_one() -> None:
    asked, central = ranked(40), source("central")
    rows = divided([[sources[0], central, *sources[1:]] for sources in asked])
    assert next(iter(rows)) is central
    assert len(rows) == ROWS_PER_RUN // LEAST_ROWS


def test_every_family_has_a_source_and_further_ones_by_its_tasks() -> None:
    small = [source(f"small {rank}", dispatch=OTHER) for rank in range(SOURCES_PER_TASK)]
    rows = divided([*ranked(40), small])
    assert [each for each in rows if each in small] == small[:1]
    others = [[source(f"{task} {rank}", dispatch=OTHER) for rank in range(SOURCES_PER_TASK)] for task in range(10)]
    even = divided([*ranked(10), *others])
    of_other = sum(each.task.dispatch == OTHER for each in even)
    assert abs(2 * of_other - len(even)) <= 1


def test_the_best_of_the_nearest_are_kept_where_they_do_not_teach() -> None:
    def measured(k: int) -> MeasuredTask:
        dispatch = matmul_dispatch(16, 16, k)
        return measured_task(map(timed, draws(LEAST_ROWS, dispatch)), dispatch, key=f"{k}")

    sizes = [16 * number for number in range(1, 61)]
    asked = [Asked(matmul_dispatch(16, 16, size), TARGET) for size in sizes]
    found = chosen_sources(asked, {Place.USER: Corpus(tuple(map(measured, sizes)))})
    teaching = [each for each in found if each.teaches]
    assert {len(each.measured.measured) for each in teaching} == {LEAST_ROWS}
    assert len(teaching) == ROWS_PER_RUN // LEAST_ROWS
    assert {len(each.measured.measured) for each in found if not each.teaches} == {BEST}
    assert {each.task.key for each in found} == {f"{size}" for size in sizes}, "each is the nearest of a task"


def test_sources_with_few_candidates_do_not_take_the_place_of_others() -> None:
    def measured(k: int, count: int) -> MeasuredTask:
        dispatch = matmul_dispatch(16, 16, k)
        return measured_task(map(timed, draws(count, dispatch)), dispatch, key=f"{k}")

    asked = [Asked(matmul_dispatch(16, 16, 16), TARGET)]
    users = Corpus(tuple(measured(16 * number, FEW - 1) for number in range(1, 7)))
    shipped = Corpus((measured(4096, FEW),))
    found = chosen_sources(asked, {Place.USER: users, Place.SHIPPED: shipped})
    assert [each.task.key for each in found if each.teaches] == ["4096"]
    assert [each.task.key for each in found if not each.teaches] == ["16", "32"], "their best are tried"
    alone = chosen_sources(asked, {Place.USER: users})
    assert [each.task.key for each in alone if each.teaches] == ["16", "32", "48", "64", "80"]
