"""Sets of measured candidates are collected: once, in order, and on from where a collection was stopped."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import iree_cases as cases
import numpy as np
import pytest
from measured_tasks import draws, failed, measured_task, timed
from replayed_run import TARGET, matmul_dispatch, task_of
from speedups import Speedups

from benchmarks.corpus import collection as collecting
from benchmarks.corpus import command
from benchmarks.corpus.collection import Collection, share_near_best
from benchmarks.corpus.families import FAMILIES, HELD_OUT, PROGRAMS
from benchmarks.corpus.sets import NETWORKS, SETS, CorpusSet, Part, Select
from benchmarks.folders import path_of
from benchmarks.search.enumeration import enumerate_traces
from mlir_sched.corpus import MeasuredTask, Origin
from mlir_sched.corpus.files import read_task, write_task
from mlir_sched.database import RecordStore
from mlir_sched.errors import UserError
from mlir_sched.evaluation.evaluator import Evaluator
from mlir_sched.models import SharedCostModel
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace

NAMES = ("first", "second")
SMALL = {
    "pools": CorpusSet("", random=6, model=4, programs=NAMES),
    "best": CorpusSet("", best_of="pools", best=3, programs=NAMES, final=True),
}
Collect = Callable[..., bool]


@pytest.fixture
def evaluators(monkeypatch: pytest.MonkeyPatch) -> list[Speedups]:
    """Have small sets collected of two products, without a compiler; return the evaluators in their order."""
    opened: list[Speedups] = []

    @contextmanager
    def speedups(*asked: object) -> Iterator[Evaluator]:
        opened.append(Speedups({name: lambda count: 1 + count % 5 for name in NAMES}, STOPS.get(len(opened))))
        yield opened[-1]

    def task_named(text: str, target: Target) -> Task:
        return task_of(text, matmul_dispatch(64 + 32 * len(text), 96, 64))

    monkeypatch.setattr(collecting, "SETS", SMALL)
    monkeypatch.setattr(collecting, "PROGRAMS", {name: name for name in NAMES})
    monkeypatch.setattr(collecting, "CompileAndRun", speedups)
    monkeypatch.setattr(collecting, "task_of", task_named)
    return opened


STOPS: dict[int, int] = {}
"""After how many candidates Ctrl-C stops an evaluator, by its number."""


@pytest.fixture
def collect(tmp_path: Path) -> Collect:
    """Return a function that collects a small set in a folder."""

    def run(name: str = "pools", end: float = math.inf, target: Target = TARGET) -> bool:
        with RecordStore.open(tmp_path / f"{name}.sqlite") as store:
            return Collection(name, target, "here", store, tmp_path).collect(end)

    return run


def tasks(folder: Path, name: str = "pools") -> list[MeasuredTask]:
    return [read_task(folder / "here" / name / f"{program}.jsonl.gz") for program in NAMES]


def test_a_pool_has_random_draws_of_all_sketches_in_turn_then_what_a_search_chooses(
    collect: Collect, evaluators: list[Speedups], tmp_path: Path
) -> None:
    assert collect()
    for task in tasks(tmp_path):
        assert task.origins == (*[Origin.RANDOM] * 6, *[Origin.MODEL] * 4)
        assert task.dropped == 0
        drawn = [trace.sketch for trace in task.traces[:6]]
        assert drawn == [task.sketches[number % len(task.sketches)] for number in range(6)]
        assert task.seconds.tolist() == pytest.approx([1e-3 / (1 + number % 5) for number in range(1, 11)], rel=1e-4)


def test_a_collection_that_was_stopped_goes_on_and_measures_nothing_twice(
    collect: Collect, evaluators: list[Speedups], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STOPS, 0, 8)
    with pytest.raises(KeyboardInterrupt):
        collect()
    monkeypatch.setitem(STOPS, 1, 7)
    with pytest.raises(KeyboardInterrupt):
        collect()
    assert (tmp_path / "here" / "pools" / "first.jsonl.gz").exists()
    assert collect()
    assert [len(each.measured) for each in evaluators] == [8, 7, 5]
    assert all(len(task.traces) == 10 for task in tasks(tmp_path))
    content = [task.measured for task in tasks(tmp_path)]
    assert collect()
    assert len(evaluators) == 3, "all was there already"
    (tmp_path / "here" / "pools" / "second.jsonl.gz").unlink()
    assert collect()
    assert evaluators[3].measured == []
    assert [task.measured for task in tasks(tmp_path)] == content


def test_a_collection_without_time_stops_before_its_next_round(
    collect: Collect, evaluators: list[Speedups], tmp_path: Path
) -> None:
    assert not collect(end=0.0)
    assert evaluators[0].measured == []
    assert list((tmp_path / "here" / "pools").iterdir()) == []


def test_the_fastest_are_measured_again(collect: Collect, evaluators: list[Speedups], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="collect 'pools' first"):
        collect("best")
    collect()
    collect("best")
    for pool, best in zip(tasks(tmp_path), tasks(tmp_path, "best"), strict=True):
        assert best.origins == (Origin.GIVEN,) * 3
        assert {trace.key for trace in best.traces} == {pool.traces[index].key for index in (3, 8, 2)}


@pytest.fixture
def whole(evaluators: list[Speedups], monkeypatch: pytest.MonkeyPatch) -> list[Trace]:
    """Have a part of the first product's design space measured whole; return its candidates in their own order."""
    dispatch = collecting.task_of("first", TARGET).dispatch
    assert dispatch is not None
    space = DesignSpace(Space.default(TARGET), dispatch, TARGET)
    *pinned, _, _, _, free = space.sample(np.random.default_rng(0), space.sketches[0]).decisions
    part = Part(space.sketches[0], {decision.name: decision.value for decision in pinned})
    monkeypatch.setitem(SMALL, "complete", CorpusSet("", parts={"first": part}, programs=("first",)))
    traces = list(enumerate_traces(space, part.sketch, part.pinned))
    assert free.name not in part.pinned
    assert len(traces) > 10
    return traces


def test_a_part_is_measured_whole_and_in_random_order(
    evaluators: list[Speedups], whole: list[Trace], collect: Collect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STOPS, 0, 8)
    with pytest.raises(KeyboardInterrupt):
        collect("complete")
    assert collect("complete")
    assert [len(each.measured) for each in evaluators] == [8, len(whole) - 8]
    task = read_task(tmp_path / "here" / "complete" / "first.jsonl.gz")
    assert task.complete
    assert set(task.origins) == {Origin.RANDOM}
    keys = [trace.key for trace in whole]
    assert sorted(trace.key for trace in task.traces) == sorted(keys)
    assert [trace.key for trace in task.traces] != keys


def test_a_part_that_the_space_does_not_have_is_refused(
    evaluators: list[Speedups], collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in (Part("no_such_sketch"), Part("contraction.registers", {"workgroup_0": (5,)})):
        monkeypatch.setitem(SMALL, "complete", CorpusSet("", parts={"first": part}, programs=("first",)))
        with pytest.raises(
            UserError, match=f"first: the design space of this machine has no candidate of {part.sketch}"
        ):
            collect("complete")


def test_the_share_of_candidates_that_are_as_good_as_the_best_counts_failures_as_slow() -> None:
    ratios = [2.0, 1.97, 1.95, *[1.0] * 6]
    task = measured_task([*map(timed, draws(9), ratios), failed(draws(10)[-1])])
    assert share_near_best(task) == 0.2
    assert share_near_best(measured_task([failed(draws(1)[0])])) == 0.0


def test_a_course_of_every_dispatch_of_a_network_says_what_each_round_took(
    evaluators: list[Speedups], collect: Collect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [collecting.task_of("first", TARGET), replace(collecting.task_of("second", TARGET), weight=3)]
    monkeypatch.setitem(SMALL, "courses", CorpusSet("", trials=11, programs=("transformer_layer",), round_size=4))
    monkeypatch.setattr(collecting, "tasks_of", lambda path, target: tasks)
    ticks = SimpleNamespace(monotonic=partial(next, count(0.0, 3.0)))
    monkeypatch.setattr("mlir_sched.tuning.ledger.time", ticks)
    monkeypatch.setitem(STOPS, 0, 8)
    with pytest.raises(KeyboardInterrupt):
        collect("courses")
    assert collect("courses")
    assert [each.measured.count("second") for each in evaluators] == [2, 4]
    first, second = (read_task(tmp_path / "here" / "courses" / f"transformer_layer-{name}.jsonl.gz") for name in NAMES)
    assert [each.work_s for each in first.measured] == [0.75] * 4 + [1.5] * 2
    assert [each.work_s for each in second.measured] == [1.5] * 6, "of the first two nobody knows; the mean stands in"
    assert (first.weight, second.weight) == (1, 3)
    assert set(first.origins) == {Origin.MODEL}


def test_the_second_half_of_a_pool_may_be_what_a_model_of_all_pools_is_least_sure_of(
    evaluators: list[Speedups], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (collecting.task_of(name, TARGET).dispatch for name in NAMES)
    shipped = {"other": matmul_dispatch(48, 48, 48), "second": second}
    for name, dispatch in shipped.items():
        assert dispatch is not None
        (folder := tmp_path / "shipped" / "there" / "pools").mkdir(parents=True, exist_ok=True)
        write_task(folder / f"{name}.jsonl.gz", measured_task(map(timed, draws(20, dispatch)), dispatch))
    monkeypatch.setattr(collecting, "SHIPPED", tmp_path / "shipped")
    taught = list[object]()
    add = SharedCostModel.add_source

    def noted_source(model: SharedCostModel, space: DesignSpace, *candidates: Any) -> None:
        taught.append(space.dispatch)
        add(model, space, *candidates)

    monkeypatch.setattr(SharedCostModel, "add_source", noted_source)

    def collected(select: Select) -> list[MeasuredTask]:
        with RecordStore.open(tmp_path / f"{select}.sqlite") as store:
            assert Collection("pools", TARGET, "here", store, tmp_path / select, select).collect(math.inf)
        return tasks(tmp_path / select)

    usual, doubtful = collected(Select.FASTEST), collected(Select.UNCERTAINTY)
    assert taught == [shipped["other"], second, shipped["other"], first], "never the dispatch itself"
    for one, other in zip(usual, doubtful, strict=True):
        assert one.traces[:6] == other.traces[:6]
        assert one.traces[6:] != other.traces[6:]
        assert one.origins == other.origins


def test_a_set_without_a_second_half_selects_nothing(evaluators: list[Speedups], tmp_path: Path) -> None:
    with (
        RecordStore.open("sqlite://") as store,
        pytest.raises(UserError, match="best has no candidates that are selected"),
    ):
        Collection("best", TARGET, "here", store, tmp_path, Select.UNCERTAINTY).collect(math.inf)
    assert evaluators == []


def test_another_machine_needs_another_name(collect: Collect, evaluators: list[Speedups]) -> None:
    collect()
    with pytest.raises(UserError, match="is of another machine: give this one another name"):
        collect("best", target=replace(TARGET, machine=(("cpu", "another"),)))


def test_what_was_collected_is_shown(
    collect: Collect,
    evaluators: list[Speedups],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    collect()
    monkeypatch.setattr(sys, "argv", ["corpus", "show", str(tmp_path)])
    assert command.main() == 0
    *shown, total = capsys.readouterr().out.strip().splitlines()
    (row,) = [line for line in shown if "contraction" in line]
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "here", "pools", "contraction arith.mulf arith.addf f32 f32 f32", "2", "20", "0", "0"
    ]  # fmt: skip
    assert total.startswith("2 tasks, 20 candidates, 1 families, 1 machines")


def test_every_family_has_four_programs_of_its_own() -> None:
    assert {len(programs) for programs in FAMILIES.values()} == {4}
    assert len(set(PROGRAMS.values())) == 4 * len(FAMILIES)
    assert all(set(each.programs) <= PROGRAMS.keys() for each in SETS.values() if not each.trials)
    assert all(path_of(name).exists() for name in NETWORKS)


def test_every_family_has_other_shapes_that_are_in_no_set() -> None:
    held_out = {name: text for programs in HELD_OUT.values() for name, text in programs.items()}
    assert HELD_OUT.keys() == FAMILIES.keys()
    assert {len(programs) for programs in HELD_OUT.values()} == {2}
    assert not held_out.keys() & PROGRAMS.keys()
    assert not {*held_out.values()} & {*PROGRAMS.values()}


@pytest.mark.landing
def test_a_set_is_collected_on_this_machine(tmp_path: Path, here: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "PROGRAMS", {"product": cases.MATMUL})
    monkeypatch.setattr(collecting, "SETS", {"pools": CorpusSet("", random=3, model=2, programs=("product",))})
    with RecordStore.open(tmp_path / "store.sqlite") as store:
        assert Collection("pools", here, "here", store, tmp_path).collect(math.inf)
    task = read_task(tmp_path / "here" / "pools" / "product.jsonl.gz")
    assert len(task.traces) == 5
    assert task.untuned_s < 1.0
    assert min(task.seconds) < math.inf
