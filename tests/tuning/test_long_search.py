"""What a search of many trials keeps of each of them."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

from task_searches import AtOnce, run_round, task_search

from mlir_sched.database import RecordStore
from mlir_sched.tuning.task_search import TaskSearch

MOST_BYTES = 5000
"""Bytes that a trial may keep for the rest of the search: 10,000 trials keep 50 MB."""


def bytes_after(search: TaskSearch, rounds: int) -> int:
    for _ in range(rounds):
        run_round(search, AtOnce(), size=16, limit=16)
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def test_a_trial_keeps_neither_its_script_nor_what_was_known_before_it(tmp_path: Path) -> None:
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        search = task_search(store)
        tracemalloc.start()
        try:
            first = bytes_after(search, 4)
            last = bytes_after(search, 10)
        finally:
            tracemalloc.stop()
        assert (search.tried, search.measured) == (224, 224)
        assert last - first < MOST_BYTES * 10 * 16


def test_work_that_ended_is_let_go_and_still_counted(tmp_path: Path) -> None:
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        search = task_search(store)
        run_round(search, AtOnce())
        rounds = search.round(8, 8)
        work = next(rounds)
        work.run(AtOnce())
        assert search.handed_out == [work]
        rounds.close()  # the user interrupts the run
        assert search.measured == 16
        run_round(search, AtOnce())
        assert search.measured == 24
