"""Runs without a search: dispatches whose family nobody measured, and those that another run has measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from measured_tasks import draws, measured_task, timed
from replayed_run import matmul_dispatch, program_search, searched, task_of
from speedups import Speedups

from mlir_sched.corpus import Corpus, MeasuredTask
from mlir_sched.corpus.sources import Place
from mlir_sched.database import RecordStore
from mlir_sched.payload import Dispatch
from mlir_sched.tuning.budget import PICKS
from mlir_sched.tuning.one_shot import OneShotProgram
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.transfer import TransferPlan

OWN, NEAR, OF_HALVES = matmul_dispatch(64, 96, 32), matmul_dispatch(64, 96, 64), matmul_dispatch(96, 64, 80, "f16")


def source(key: str, dispatch: Dispatch) -> MeasuredTask:
    """Return a measured dispatch whose candidates become faster one by one."""
    return measured_task([timed(t, 1.0 + n / 8) for n, t in enumerate(draws(40, dispatch))], dispatch, key=key)


def chosen(dispatches: Mapping[str, Dispatch], corpora: Mapping[Place, Corpus]) -> OneShotProgram:
    """Return a program of dispatches by name whose candidates were chosen, with what is known before."""

    @contextmanager
    def opened() -> Iterator[Mapping[Place, Corpus]]:
        yield corpora

    tasks = [task_of(name, dispatch) for name, dispatch in dispatches.items()]
    with RecordStore.open("sqlite://") as store:
        program = program_search(TuneOptions(trials=0), store, tasks, transfer=TransferPlan("plan", opened))
        found = searched(program, Speedups(dict.fromkeys(dispatches, 0.5)))
    assert isinstance(found, OneShotProgram)
    return found


def test_where_no_dispatch_of_a_family_was_measured_all_of_its_candidates_are_templates() -> None:
    program = chosen({"own": OWN, "of halves": OF_HALVES}, {Place.SHIPPED: Corpus((source("near", NEAR),))})
    assert dict(program.chosen().candidates) == {"templates": 1 + PICKS, "cost model": 2}
    (halves,) = [search for search in program.searches if search.task.name == "of halves"]
    assert list(halves.history.records) == [trace.key for trace in halves.space.templates()[:PICKS]]


def test_the_best_that_another_run_found_for_the_same_dispatch_comes_first() -> None:
    known = source("own", OWN)
    program = chosen({"own": OWN}, {Place.USER: Corpus((known,)), Place.SHIPPED: Corpus((source("near", NEAR),))})
    assert dict(program.chosen().candidates) == {"earlier runs": 2, "templates": 1}
    fastest = [each.trace.key for each in sorted(known.measured, key=lambda each: each.seconds)]
    tried = list(program.searches[0].history.records)
    assert [key for key in tried if key in fastest] == fastest[:2]
    assert tried[0] == fastest[0]
