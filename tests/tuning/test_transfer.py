"""What searches begin from: candidates of other dispatches in the model, and the best of them tried first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rule_ops
from measured_tasks import draws, measured_task, timed
from plans import flagged
from replayed_run import METHOD, TARGET, HashedMeasurements, matmul_dispatch, program_search, searched, task_of
from speedups import Speedups, timing
from task_searches import task_search

from mlir_sched.corpus import Corpus, MeasuredTask
from mlir_sched.corpus.sources import Asked, Place
from mlir_sched.database import RecordStore
from mlir_sched.emission.run_result import _transferred
from mlir_sched.errors import UserError
from mlir_sched.models import SharedCostModel, XGBoostModel
from mlir_sched.models.metrics import pair_accuracy
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.search import Demand, RandomSearch, Reach
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.tasks import Model
from mlir_sched.trace import Trace
from mlir_sched.tuning.journal import RoundLog
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.program_search import ProgramSearch
from mlir_sched.tuning.transfer import Transfer, TransferPlan
from mlir_sched.tuning.tuning_run import TuningRun

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


def plan_of(*tasks: MeasuredTask, rows: bool = True, starts: bool = True) -> TransferPlan:
    return TransferPlan("plan", Opened(*tasks), rows, starts)


@pytest.mark.parametrize("plan", [TransferPlan("plan", Opened(NEAR)), None])
def test_a_model_is_judged_on_the_first_round_before_it_learns_of_the_task(
    plan: TransferPlan | None, tmp_path: Path
) -> None:
    with RecordStore.open("sqlite://") as store:
        program = program_search(OPTIONS, store, TASKS[:1], transfer=plan)
        (search,) = searched(program, HashedMeasurements(tmp_path / "log")).searches
    if plan is None:
        assert search.foreseen is None, "its model had learnt from nothing"
        return
    model = SharedCostModel(XGBoostModel())
    program.run.transfer.teach(model)
    task, first = model.task(search.space), list(search.history.records.values())[: search.history.trials[0]]
    assert task.refresh()
    ratios = np.array([record.outcome.timing.ratio if record.outcome.timing else 0.0 for record in first])
    assert search.foreseen == pair_accuracy(task.predict([record.trace for record in first if record.trace]), ratios)
    assert search.foreseen != 0.5


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


@pytest.mark.parametrize("shape", [(100, 120, 48), (4, 64, 32)], ids=["every tail", "no tail"])
def test_starts_survive_that_lie_in_tails_of_other_kinds(shape: tuple[int, int, int]) -> None:
    lenders = source("lender", shape, count=60)
    tails = {trace.key: trace.values.get("tail") for trace in lenders.traces}
    with RecordStore.open("sqlite://") as store:
        search = task_search(store)
        fitted = [trace.key for trace in lenders.traces if search.fitted(trace) is not None]
    for tail in set(tails.values()):
        of_tail = [key for key in tails if tails[key] == tail]
        assert len([key for key in fitted if key in of_tail]) > len(of_tail) / 2, tail


def test_sources_are_looked_for_where_a_program_is_searched() -> None:
    other = rule_ops.dispatch(rule_ops.matmul(64, "f16", m=128, n=256))
    of_other = measured_task(map(timed, draws(4, other)), other, key="of another family")
    variants = (TASKS[0], timing(1e-3, 1.0)), (task_of("other", other), None)
    built = [
        BuiltVariant(flagged(task.name), Model("model.mlir", (), (task,), ()), b"", time, ()) for task, time in variants
    ]
    plan, space = plan_of(NEAR, of_other), Space.default(TARGET)
    with RecordStore.open("sqlite://") as store:
        run = TuningRun.of(OPTIONS, TARGET, space, store, built, start=0.0, method=METHOD, transfer=plan)
        assert [each.task.key for each in run.transfer.sources] == ["near"], "the second fails, and is not searched"


def test_rows_and_starts_can_be_had_alone(tmp_path: Path) -> None:
    asked = Asked(matmul_dispatch(*SHAPES["first"]), TARGET)
    rows = Transfer.of([asked], {Place.SHIPPED: CORPUS}, starts=False)
    starts = Transfer.of([asked], {Place.SHIPPED: CORPUS}, rows=False)
    assert list(rows.starts_of(asked)) == []
    assert len(list(starts.starts_of(asked))) == 4
    lenders = replace(rows, sources=tuple(replace(each, teaches=False) for each in rows.sources))
    for transfer, fitted in ((rows, True), (starts, False), (lenders, False)):
        model = SharedCostModel(XGBoostModel())
        transfer.teach(model)
        assert model.refresh() is fitted
    assert len({rows.digest, starts.digest, Transfer().digest}) == 3


def test_candidates_that_are_no_longer_legal_teach_nothing_and_cost_nothing_else(tmp_path: Path) -> None:
    lacking = {trace.key: trace for trace in (Trace(t.sketch, t.decisions[1:]) for t in NEAR.traces)}
    legal = NEAR.measured[:3]
    part = replace(NEAR, measured=(*legal, *(timed(trace, 0.1) for trace in lacking.values())))
    transfer = Transfer.of([Asked(matmul_dispatch(*SHAPES["first"]), TARGET)], {Place.SHIPPED: Corpus((part,))})
    (known,) = transfer.sources
    assert len(known.measured.measured) > len(legal)
    assert set(known.measured.traces) == {each.trace for each in legal}
    gone = replace(part, measured=part.measured[len(legal) :])
    assert Transfer.of([Asked(NEAR.dispatch, TARGET)], {Place.SHIPPED: Corpus((gone,))}).sources == ()
    for each in (part, gone):
        assert measured(tmp_path, plan_of(each), name=f"{len(each.measured)}").tried == OPTIONS.trials


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
    assert (TuneOptions().begins_from, TuneOptions(trials=0).begins_from) == ("off", "auto")
    assert (TuneOptions(transfer="auto").transfer_store, TuneOptions(transfer=Path("a")).transfer_store) == ("", "a")
    assert TuneOptions(fresh=True, transfer="auto").fresh
    with pytest.raises(UserError, match="leave out the further store"):
        TuneOptions(fresh=True, transfer="other.sqlite")
    with pytest.raises(UserError, match="empty name"):
        TuneOptions(transfer="")


def test_what_a_task_reaches_is_believed_from_sources_and_from_tasks_of_the_program(tmp_path: Path) -> None:
    found = measured(tmp_path, plan_of(NEAR, FAR))
    sources = [each.shown for each in (NEAR, FAR)]
    first, second = sorted(found.searches, key=lambda search: (search.believed or NONE).others)
    demand, untuned_s = Demand.of(first.space.dispatch), first.history.untuned.median_s
    expected = Reach.of(demand, untuned_s, [each for each in sources if each])
    assert first.believed is not None
    assert expected is not None
    assert first.believed.others == 2
    assert first.believed.mean == pytest.approx(expected.mean, abs=1e-3), "sources are kept with four digits"
    assert first.believed.spread == pytest.approx(expected.spread, rel=1e-2)
    assert second.believed is not None
    assert second.believed.others == 3, "the other task of the program has candidates by then"
    assert first.shown.best_s == first.history.seconds_per_call() < first.shown.untuned_s
    transferred = _transferred(found)
    assert transferred is not None
    errors = [abs(each.believed.error(each.shown)) for each in found.searches if each.believed]
    assert transferred.reach_error == pytest.approx(float(np.exp(np.mean(errors))))
    assert transferred.reach_held in (0.0, 0.5, 1.0)
    assert transferred.reach_judged == 2
    assert "what 2 would reach was foreseen within a factor of" in transferred.words


def test_nothing_is_believed_where_fewer_than_two_have_shown_something_here(tmp_path: Path) -> None:
    elsewhere = replace(FAR, target=replace(TARGET, machine=(("cpu", "another"),)))
    cores = replace(FAR, target=replace(TARGET, cores=TARGET.cores + 1))
    for number, plan in enumerate((None, plan_of(NEAR, elsewhere), plan_of(NEAR, cores))):
        with RecordStore.open(tmp_path / f"{number}.sqlite") as store:
            program = program_search(OPTIONS, store, TASKS[:1], transfer=plan)
            (search,) = searched(program, HashedMeasurements(tmp_path / "log")).searches
            assert search.believed is None
            transferred = _transferred(program)
            assert transferred is None or transferred.reach_error is None


NONE = Reach(0.0, 0.0, 0)
