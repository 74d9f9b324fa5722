"""What searches begin from: candidates of other dispatches in the model, and the best of them tried first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from measured_tasks import measured_task, timed
from replayed_run import TARGET, HashedMeasurements, matmul_dispatch, program_search, searched, task_of
from speedups import Speedups
from task_searches import TASK, run_round, task_search

from mlir_sched.corpus import Corpus, MeasuredTask
from mlir_sched.corpus.sources import Asked, Place
from mlir_sched.database import RecordStore
from mlir_sched.errors import UserError
from mlir_sched.models import SharedCostModel, XGBoostModel
from mlir_sched.search import RandomSearch
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.trace import Trace
from mlir_sched.tuning.exchange import fitting, offer_traces
from mlir_sched.tuning.journal import RoundLog
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.program_search import ProgramSearch
from mlir_sched.tuning.transfer import Transfer, TransferPlan

SHAPES = {"first": (64, 96, 32), "second": (128, 64, 48)}
TASKS = [task_of(name, matmul_dispatch(*shape)) for name, shape in SHAPES.items()]
OPTIONS = TuneOptions(trials=24, round_size=8, seed=3)


def source(name: str, shape: tuple[int, int, int], count: int = 40, seed: int = 0) -> MeasuredTask:
    """Return a measured dispatch; the speed of a candidate follows from its features."""
    dispatch = matmul_dispatch(*shape)
    space = DesignSpace(Space.default(TARGET), dispatch, TARGET)
    drawn = RandomSearch(space, np.random.default_rng(seed)).suggest(count)
    ratios = 1.0 + space.features(drawn)[:, :40].sum(axis=1) % 7
    measured = [timed(trace, float(ratio)) for trace, ratio in zip(drawn, ratios, strict=True)]
    return measured_task(measured, dispatch, key=name)


NEAR, FAR = source("near", (64, 96, 64)), source("far", (512, 512, 512), seed=1)
CORPUS = Corpus((FAR, NEAR))


class Opened:
    """What sources come from; counts how often it is opened."""

    def __init__(self, *tasks: MeasuredTask) -> None:
        self.corpus, self.times = Corpus(tasks), 0

    @contextmanager
    def __call__(self) -> Iterator[Mapping[Place, Corpus]]:
        self.times += 1
        yield {Place.SHIPPED: self.corpus}


def program(store: RecordStore, plan: TransferPlan | None, options: TuneOptions = OPTIONS) -> ProgramSearch:
    return program_search(options, store, TASKS, transfer=plan)


def tried(search: ProgramSearch) -> list[list[str]]:
    return [list(each.history.records) for each in search.searches]


def measured(
    folder: Path, plan: TransferPlan | None, options: TuneOptions = OPTIONS, name: str = "store"
) -> ProgramSearch:
    with RecordStore.open(folder / f"{name}.sqlite") as store:
        return searched(program(store, plan, options), HashedMeasurements(folder / "log"))


def own_traces(count: int, seed: int = 5) -> list[Trace]:
    assert TASK.dispatch is not None
    space = DesignSpace(Space.default(TARGET), TASK.dispatch, TARGET)
    return RandomSearch(space, np.random.default_rng(seed)).suggest(count)


# The first round of a task


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 8])
def test_lent_traces_are_at_most_half_of_a_first_round_however_small(limit: int) -> None:
    lent = own_traces(6)
    for prepared in (False, True):
        with RecordStore.open("sqlite://") as store:
            search = task_search(store)
            search.begin_with(lent, 6)
            if prepared:
                search.prepare(8)
            run_round(search, Speedups({"matmul": 1.0}), limit=limit)
            keys = list(search.history.records)
            assert [key for key in keys if key in {t.key for t in lent}] == [t.key for t in lent[: limit // 2]]
            assert len(keys) == limit
            run_round(search, Speedups({"matmul": 1.0}))
            assert len(search.history.records) == limit + 8
            assert not search.lent, "the others are dropped"


def test_lent_traces_come_after_the_given_ones_and_are_half_of_the_rest() -> None:
    given, lent = own_traces(2), own_traces(6, seed=6)
    with RecordStore.open("sqlite://") as store:
        search = task_search(store, starts=given)
        search.begin_with([*given, *lent], 6)
        run_round(search, Speedups({"matmul": 1.0}))
        keys = list(search.history.records)
        assert keys[:2] == [trace.key for trace in given]
        assert [keys.index(trace.key) for trace in lent[:3]] == [3, 5, 7]
        assert len(keys) == 8


def test_what_is_lent_is_not_given_again_by_another_task() -> None:
    (trace,) = own_traces(1)
    with RecordStore.open("sqlite://") as store:
        search, other = task_search(store), task_search(store)
        search.begin_with([trace, trace], 4)
        assert [each.key for each in search.lent] == [trace.key]
        assert search.fitted(trace) is None
        assert fitting(trace, other, [search]) == []
        run_round(other, Speedups({"matmul": 2.0}))
        offer_traces([search], [])
        assert not search.starts


def test_a_task_that_has_records_begins_from_them() -> None:
    with RecordStore.open("sqlite://") as store:
        run_round(task_search(store, sources="a"), Speedups({"matmul": 1.0}))
        search = task_search(store, since=store.last_record(), sources="a")
        search.warm_start()
        search.begin_with(own_traces(4), 4)
        assert not search.lent


def test_a_model_is_judged_on_the_first_round_before_it_learns_of_the_task(tmp_path: Path) -> None:
    with_sources, without = (measured(tmp_path, plan, name=str(plan)[:12]) for plan in (plan_of(NEAR), None))
    assert all(search.foreseen is not None and 0 <= search.foreseen <= 1 for search in with_sources.searches)
    assert without.searches[0].foreseen is None, "its model had learnt from nothing"


# A run


def plan_of(*tasks: MeasuredTask, rows: bool = True, starts: bool = True) -> TransferPlan:
    return TransferPlan("plan", Opened(*tasks), rows, starts)


def test_tasks_try_the_two_best_of_their_nearest_sources_repaired(tmp_path: Path) -> None:
    transfer = Transfer.of([Asked(matmul_dispatch(*SHAPES["first"]), TARGET)], {Place.SHIPPED: CORPUS})
    best = [transfer.sources_of(Asked(matmul_dispatch(*SHAPES["first"]), TARGET))[n].best for n in (0, 1)]
    asked = Asked(matmul_dispatch(*SHAPES["first"]), TARGET)
    assert list(transfer.starts_of(asked)) == [*best[0], *best[1]]
    fastest = sorted(NEAR.measured, key=lambda each: each.seconds)[:2]
    assert list(best[0]) == [each.trace for each in fastest]
    found = measured(tmp_path, plan_of(NEAR, FAR))
    (first,) = [search for search in found.searches if search.task.name == "first"]
    repaired = {first.space.repaired(trace).key for trace in transfer.starts_of(asked)}
    assert repaired & set(list(first.history.records)[:4])


def test_rows_and_starts_can_be_had_alone(tmp_path: Path) -> None:
    asked = Asked(matmul_dispatch(*SHAPES["first"]), TARGET)
    rows = Transfer.of([asked], {Place.SHIPPED: CORPUS}, starts=False)
    starts = Transfer.of([asked], {Place.SHIPPED: CORPUS}, rows=False)
    assert list(rows.starts_of(asked)) == []
    assert len(list(starts.starts_of(asked))) == 4
    for transfer, fitted in ((rows, True), (starts, False)):
        model = SharedCostModel(XGBoostModel())
        transfer.teach(model)
        assert model.refresh() is fitted
    assert len({rows.digest, starts.digest, Transfer().digest}) == 3


def test_a_source_that_is_no_longer_legal_costs_its_rows_alone(tmp_path: Path) -> None:
    gone = replace(NEAR, measured=tuple(timed(Trace("gone", each.trace.decisions)) for each in NEAR.measured))
    model = SharedCostModel(XGBoostModel())
    transfer = Transfer.of([Asked(matmul_dispatch(*SHAPES["first"]), TARGET)], {Place.SHIPPED: Corpus((gone,))})
    transfer.teach(model)
    assert not model.refresh()
    assert measured(tmp_path, plan_of(gone)).tried == OPTIONS.trials


def test_off_searches_as_if_there_were_no_sources_and_on_without_any_tries_the_same(tmp_path: Path) -> None:
    off, empty = measured(tmp_path, None, name="off"), measured(tmp_path, plan_of(), name="empty")
    assert tried(off) == tried(empty) != tried(measured(tmp_path, plan_of(NEAR), name="on"))
    assert off.run.transfer.key == []
    assert off.run.key != empty.run.key


def test_what_searches_begin_from_is_a_part_of_the_keys_of_runs_and_rounds(tmp_path: Path) -> None:
    plans = [None, plan_of(NEAR), plan_of(FAR), plan_of(NEAR, starts=False), plan_of(NEAR, rows=False)]
    keys = set()
    for number, plan in enumerate(plans):
        with RecordStore.open(tmp_path / f"{number}.sqlite") as store:
            search = program(store, plan)
            keys.add((search.run.key, RoundLog.of(search.run, search.tasks, search.target).key))
    assert len({run for run, _ in keys}) == len({rounds for _, rounds in keys}) == len(plans)


def test_sources_are_chosen_once_per_run_whatever_becomes_of_them(tmp_path: Path) -> None:
    opened = Opened(NEAR, FAR)
    plan = TransferPlan("plan", opened)
    first = measured(tmp_path, plan, replace(OPTIONS, trials=8))
    opened.corpus = Corpus(())
    again = measured(tmp_path, plan)
    assert opened.times == 1
    assert again.run.transfer.digest == first.run.transfer.digest
    alone = measured(tmp_path, plan_of(NEAR, FAR), name="alone")
    assert tried(again) == tried(alone), "a larger budget goes on as if there had been no other process"
    assert again.measured == alone.measured - first.measured


def test_what_another_run_stores_meanwhile_changes_nothing(tmp_path: Path) -> None:
    with RecordStore.open(tmp_path / "shared.sqlite") as store:
        plan = TransferPlan("plan", lambda: opened(store))
        one = program(store, plan)
        searched(
            program_search(OPTIONS, store, [task_of("third", matmul_dispatch(64, 96, 80))]), Speedups({"third": 2.0})
        )
        same = program(store, plan)
        assert one.run.transfer.digest == same.run.transfer.digest
        assert one.run.transfer.sources == ()
        later = program(store, plan, replace(OPTIONS, seed=4))
        assert [each.task.name for each in later.run.transfer.sources] == ["third"]


@contextmanager
def opened(store: RecordStore) -> Iterator[Mapping[Place, Corpus]]:
    yield {Place.RUN: Corpus.of_store(store)}


def test_a_fresh_start_and_a_store_to_begin_from_exclude_each_other() -> None:
    assert TuneOptions().transfer == "off"
    assert (TuneOptions(transfer="auto").transfer_store, TuneOptions(transfer=Path("a")).transfer_store) == ("", "a")
    assert TuneOptions(fresh=True, transfer="auto").fresh
    with pytest.raises(UserError, match="leave out the store"):
        TuneOptions(fresh=True, transfer="other.sqlite")
