"""Runs without a search: what candidates are chosen from, and what changes the choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from measured_tasks import measured_task, timed
from replayed_run import TARGET, matmul_dispatch, program_search, searched, task_of
from speedups import Estimating, Factor, Speedups

from mlir_sched.corpus import Corpus, MeasuredTask
from mlir_sched.corpus.sources import Place
from mlir_sched.database import RecordStore
from mlir_sched.outcome import Outcome, Verdict
from mlir_sched.search import RandomSearch
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.tuning.budget import PICKS
from mlir_sched.tuning.one_shot import OneShotProgram
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.program_search import NO_TIME_TO_MEASURE
from mlir_sched.tuning.transfer import TransferPlan
from mlir_sched.tuning.tuning_run import RunClock

SHAPES = {"first": (64, 96, 32), "second": (128, 64, 48)}
TASKS = [task_of(name, matmul_dispatch(*shape)) for name, shape in SHAPES.items()]
OPTIONS = TuneOptions(trials=0)
SLOWER: Mapping[str, Factor] = dict.fromkeys(SHAPES, 0.5)


def space_of(name: str) -> DesignSpace:
    return DesignSpace(Space.default(TARGET), matmul_dispatch(*SHAPES[name]), TARGET)


def draws(name: str, count: int, seed: int = 0) -> list[Trace]:
    return RandomSearch(space_of(name), np.random.default_rng(seed)).suggest(count)


def source(name: str, shape: tuple[int, int, int], count: int = 40) -> MeasuredTask:
    """Return a measured dispatch; the speed of a candidate follows from its features."""
    dispatch = matmul_dispatch(*shape)
    space = DesignSpace(Space.default(TARGET), dispatch, TARGET)
    drawn = RandomSearch(space, np.random.default_rng(0)).suggest(count)
    ratios = 1.0 + space.features(drawn)[:, :40].sum(axis=1) % 7
    return measured_task([timed(t, float(r)) for t, r in zip(drawn, ratios, strict=True)], dispatch, key=name)


NEAR = source("near", (64, 96, 64))


@contextmanager
def opened() -> Iterator[Mapping[Place, Corpus]]:
    yield {Place.SHIPPED: Corpus((NEAR,))}


PLAN = TransferPlan("plan", opened)


def one_shot(
    store: RecordStore,
    speedups: Mapping[str, Factor] = SLOWER,
    *,
    plan: TransferPlan | None = PLAN,
    options: TuneOptions = OPTIONS,
    start_from: Sequence[Trace] = (),
) -> OneShotProgram:
    """Return a program of two products whose candidates were chosen and measured."""
    program = program_search(options, store, TASKS, transfer=plan, start_from=start_from)
    found = searched(program, Speedups(speedups))
    assert isinstance(found, OneShotProgram)
    return found


def tried(program: OneShotProgram) -> dict[str, list[str]]:
    return {search.task.name: list(search.history.records) for search in program.searches}


def test_three_candidates_of_a_dispatch_come_from_the_model_of_others_and_the_first_template() -> None:
    with RecordStore.open("sqlite://") as store:
        program = one_shot(store)
    chosen = program.chosen()
    assert (chosen.dispatches, dict(chosen.candidates)) == (2, {"templates": 2, "cost model": 4})
    for search in program.searches:
        keys = set(search.history.records)
        assert len(keys) == PICKS
        assert search.space.templates()[0].key in keys
        model = program._model.task(search.space)
        drawn = model.predict(draws(search.task.name, 64))
        of_model = [r.trace for key, r in search.history.records.items() if key != search.space.templates()[0].key]
        assert min(model.predict([trace for trace in of_model if trace is not None])) > np.quantile(drawn, 0.9)
    assert chosen.ready_s is not None
    assert chosen.words.startswith(
        "no search: 6 candidates of 2 dispatches (templates: 2, cost model: 4); the cost model"
    )


@pytest.mark.parametrize(
    ("options", "plan", "origins"),
    [
        (OPTIONS, None, {"templates": 6}),
        (replace(OPTIONS, templates=False), PLAN, {"cost model": 6}),
        (replace(OPTIONS, templates=False), None, {"random draws": 6}),
    ],
)
def test_what_is_left_out_leaves_the_choice_to_the_rest(
    options: TuneOptions, plan: TransferPlan | None, origins: dict[str, int]
) -> None:
    with RecordStore.open("sqlite://") as store:
        program = one_shot(store, options=options, plan=plan)
    assert dict(program.chosen().candidates) == origins
    if plan is None:
        assert program.chosen().ready_s is None
    if "templates" in origins:
        for search in program.searches:
            assert list(search.history.records) == [trace.key for trace in search.space.templates()[:PICKS]]


@pytest.mark.parametrize(("count", "others"), [(1, 2), (5, 0)])
def test_given_traces_are_candidates_however_many_they_are(count: int, others: int) -> None:
    given = draws("first", count, seed=7)
    with RecordStore.open("sqlite://") as store:
        program = one_shot(store, start_from=given)
    assert {trace.key for trace in given} <= set(tried(program)["first"])
    assert len(tried(program)["first"]) == count + others
    assert program.chosen().candidates["given"] == sum(
        len({space_of(name).repaired(trace).key for trace in given}) for name in SHAPES
    )


def test_no_time_that_is_measured_changes_what_is_chosen() -> None:
    tasks = [*TASKS, task_of("third", matmul_dispatch(96, 64, 80))]  # chosen once the first one's outcomes are known
    slower: Mapping[str, Factor] = {**SLOWER, "third": 0.5}
    faster: Mapping[str, Factor] = {"first": lambda number: 2.0 + number, "second": 3.0, "third": 0.5}
    chosen = []
    for speedups in (slower, faster):
        with RecordStore.open("sqlite://") as store:
            program = searched(program_search(OPTIONS, store, tasks, transfer=PLAN), Speedups(speedups))
            chosen.append({search.task.name: list(search.history.records) for search in program.searches})
    assert chosen[0] == chosen[1]


class OneGuess(DesignSpace):
    """A space of which modules guess little."""

    def templates(self) -> tuple[Trace, ...]:
        return super().templates()[:1]


def test_where_nothing_predicts_the_few_templates_are_all() -> None:
    with RecordStore.open("sqlite://") as store:
        program = program_search(OPTIONS, store, TASKS)
        found = searched(replace(program, run=replace(program.run, design=OneGuess), model=None), Speedups(SLOWER))
        assert isinstance(found, OneShotProgram)
    assert dict(found.chosen().candidates) == {"templates": 2}


def test_another_seed_chooses_others() -> None:
    chosen = []
    for seed in (0, 1):
        with RecordStore.open("sqlite://") as store:
            chosen.append(tried(one_shot(store, options=replace(OPTIONS, seed=seed))))
    assert chosen[0] != chosen[1]


def test_a_second_run_measures_nothing_and_a_search_goes_on_from_the_records(tmp_path: Path) -> None:
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        first = one_shot(store)
        again = one_shot(store)
        assert (tried(again), again.measured) == (tried(first), 0)
        evaluator = Speedups(SLOWER)
        search = searched(program_search(TuneOptions(trials=16), store, TASKS), evaluator)
        known = {each.task.name: set(each.history.records) for each in search.searches}
        third = one_shot(store)
        assert (tried(third), third.measured) == (tried(first), 0), "whatever came between"
    assert all(set(keys) < known[name] for name, keys in tried(first).items())
    assert len(evaluator.measured) == search.tried == 16


class FirstChecked(Speedups):
    """Of every task the first candidate is checked in full, and the others are not."""

    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        for index, outcome in super().evaluate(task, scripts, known):
            right = self.measured.count(task.name) == 1
            yield index, outcome if right else replace(outcome, verdict=Verdict.NOT_CHECKED)


@pytest.mark.parametrize("kind", [Speedups, FirstChecked])
def test_dispatches_whose_faster_candidates_the_store_has_need_no_others(tmp_path: Path, kind: type[Speedups]) -> None:
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        searched(program_search(TuneOptions(trials=16), store, TASKS), kind({"first": 2.0, "second": 0.5}))
        evaluator = Speedups(SLOWER)
        program = searched(program_search(OPTIONS, store, TASKS, transfer=PLAN), evaluator)
        assert isinstance(program, OneShotProgram)
    assert evaluator.measured == ["second"] * PICKS
    assert (program.chosen().dispatches, program.chosen().known) == (1, 1)
    assert "and those that the store had of 1 more" in program.chosen().words


def test_where_a_device_has_a_model_that_chooses_among_what_is_suggested() -> None:
    options, evaluator = replace(OPTIONS, templates=False), Estimating(SLOWER)
    with RecordStore.open("sqlite://") as store:
        program = program_search(options, store, TASKS)
        found = searched(replace(program, run=replace(program.run, drawn=4), model=None), evaluator)
        assert isinstance(found, OneShotProgram)
    assert [len(drawn) for drawn in evaluator.drawn] == [4 * PICKS] * 2
    assert set(evaluator.scripts) == {script for drawn in evaluator.drawn for script in drawn[-PICKS:]}
    assert dict(found.chosen().candidates) == {"device model": 2 * PICKS}


class Slow(Speedups):
    """A round takes half a minute."""

    clock: RunClock

    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        self.clock.start -= 30.0
        return super().evaluate(task, scripts, known)


def test_minutes_bound_a_run_without_a_search() -> None:
    evaluator = Slow(SLOWER)
    with RecordStore.open("sqlite://") as store:
        searched(program_search(TuneOptions(trials=16), store, TASKS), Speedups(SLOWER))
        program = program_search(TuneOptions(trials=0, minutes=0.5), store, TASKS, transfer=PLAN)
        evaluator.clock = program.run.clock
        found = searched(program, evaluator)
        assert isinstance(found, OneShotProgram)
    assert evaluator.measured == ["first"] * PICKS
    assert found.unsearched() == {TASKS[1].key: NO_TIME_TO_MEASURE}
    assert (found.chosen().dispatches, found.chosen().known) == (1, 0), "no candidate that is known is faster"
