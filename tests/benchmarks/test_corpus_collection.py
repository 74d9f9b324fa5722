"""Sets of measured candidates are collected: once, in order, and on from where a collection was stopped."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import iree_cases as cases
import pytest
from replayed_run import TARGET, matmul_dispatch, task_of
from speedups import Speedups

from benchmarks.corpus import collection as collecting
from benchmarks.corpus import command
from benchmarks.corpus.collection import Collection
from benchmarks.corpus.families import FAMILIES, PROGRAMS
from benchmarks.corpus.sets import SETS, CorpusSet
from mlir_sched.corpus import MeasuredTask, Origin
from mlir_sched.corpus.files import read_task
from mlir_sched.database import RecordStore
from mlir_sched.errors import UserError
from mlir_sched.evaluation.evaluator import Evaluator
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task

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
    assert [len(programs) for programs in FAMILIES.values()] == [4] * 8
    assert len(set(PROGRAMS.values())) == 32
    assert all(set(each.programs) <= PROGRAMS.keys() for each in SETS.values())


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
