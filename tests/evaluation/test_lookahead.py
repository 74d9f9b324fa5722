"""What follows a round is decided before its outcomes are known, and compiled while they are measured."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import cast

import pytest
from replayed_run import matmul_dispatch, program_search, task_of
from replayed_run import searched as whole
from speedups import Factor, Speedups

from mlir_sched.compiler import CompilerPool
from mlir_sched.database import RecordStore
from mlir_sched.evaluation.compiling_ahead import CompilingAhead
from mlir_sched.evaluation.lookahead import Lookahead, Upcoming
from mlir_sched.outcome import Outcome
from mlir_sched.tasks.task import Task
from mlir_sched.tuning.options import TuneOptions

SHAPES = {"light": (64, 96, 32), "heavy": (128, 64, 48), "other": (32, 64, 96)}


class Anticipated(Speedups):
    """Speed-ups, by default by the order of candidates, with what was announced to follow every evaluation."""

    def __init__(self, speedup: Factor = lambda tried: 1 + tried / 50) -> None:
        super().__init__(dict.fromkeys(SHAPES, speedup))
        self.evaluated: list[tuple[str, list[str]]] = []
        self.announced: list[tuple[str, list[str]] | None] = []
        self.lookahead = Lookahead()

    def anticipate(self, lookahead: Lookahead) -> None:
        self.lookahead = lookahead

    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        upcoming = self.lookahead.upcoming()
        self.announced.append(None if upcoming is None else (upcoming.task.name, list(upcoming.scripts)))
        self.evaluated.append((task.name, list(scripts)))
        yield from super().evaluate(task, scripts, known)


def scripts_of(folder: Path, evaluator: Speedups, trials: int = 60) -> list[str]:
    """Return the scripts of a search over three tasks in the order in which they were stored."""
    tasks = [task_of(name, matmul_dispatch(*shape)) for name, shape in SHAPES.items()]
    with RecordStore.open(folder / "records.sqlite") as store:
        program = whole(program_search(TuneOptions(trials=trials, round_size=6), store, tasks), evaluator)
        return [record.script for search in program.searches for record in search.history.records.values()]


def test_what_was_announced_is_what_follows(tmp_path: Path) -> None:
    evaluator = Anticipated(0.5)  # nothing is found that other tasks would try in between
    scripts_of(tmp_path, evaluator)
    pairs = list(zip(evaluator.announced, evaluator.evaluated[1:], strict=False))
    rounds = [(announced, following) for announced, following in pairs if announced is not None]
    assert len(rounds) > len(pairs) / 2
    for (task, scripts), (next_task, next_scripts) in rounds:
        assert next_task == task
        assert set(next_scripts) <= set(scripts) or set(scripts) <= set(next_scripts)
    assert any(announced == following for announced, following in rounds)


def test_who_asks_what_follows_does_not_change_the_search(tmp_path: Path) -> None:
    for folder in ("asked", "not asked"):
        (tmp_path / folder).mkdir()
    asked = scripts_of(tmp_path / "asked", Anticipated())
    assert asked == scripts_of(tmp_path / "not asked", Speedups(Anticipated().by_name))


def test_a_decision_is_made_once_and_its_error_is_the_searchs() -> None:
    calls = list[int]()
    task = task_of("light", matmul_dispatch(*SHAPES["light"]))

    def decide() -> Upcoming:
        calls.append(1)
        return Upcoming(task, ["script"])

    lookahead = Lookahead(decide)
    assert lookahead.upcoming() == lookahead.upcoming() == Upcoming(task, ["script"])
    lookahead.decide()
    assert calls == [1]

    def fail() -> Upcoming:
        raise RuntimeError("no trace")

    failing = Lookahead(fail)
    assert failing.upcoming() is None, "an evaluator goes on"
    with pytest.raises(RuntimeError, match="no trace"):
        failing.decide()


class Workers:
    """A pool that notes on which cores its workers were kept."""

    workers = 2

    def __init__(self) -> None:
        self.kept: list[tuple[int, ...]] = []

    @contextmanager
    def on_cores(self, cores: Sequence[int]) -> Iterator[None]:
        self.kept.append(tuple(cores))
        yield


@pytest.fixture
def core() -> int:
    return min(os.sched_getaffinity(0))


def ahead(cores: Sequence[int]) -> tuple[CompilingAhead, Workers]:
    pool = Workers()
    return CompilingAhead(cast("CompilerPool", pool), lambda: cores), pool


def test_a_job_beside_a_measurement_runs_on_the_spare_cores(core: int) -> None:
    compiling, pool = ahead([core])
    done = list[tuple[int, set[int]]]()
    with compiling.beside(lambda _: done.append((get_ident(), os.sched_getaffinity(0)))):
        pass
    ((thread, cores),) = done
    assert thread != get_ident()
    assert cores == {core}
    assert pool.kept == [(core,)]
    assert compiling.workers == 1
    compiling.close()


def test_without_spare_cores_nothing_runs_beside() -> None:
    compiling, pool = ahead([])
    done = list[int]()
    with compiling.beside(lambda _: done.append(1)):
        pass
    assert (done, pool.kept, compiling.workers) == ([], [], 0)


def test_a_job_ends_with_an_interrupted_measurement(core: int) -> None:
    compiling, _ = ahead([core])
    ended = list[int]()

    def job(stopped: Callable[[], bool]) -> None:
        while not stopped():
            pass
        ended.append(1)

    with pytest.raises(KeyboardInterrupt), compiling.beside(job):
        raise KeyboardInterrupt
    assert ended == [1]
    compiling.close()


def test_the_error_of_a_job_is_raised(core: int) -> None:
    compiling, _ = ahead([core])

    def job(_: Callable[[], bool]) -> None:
        raise ValueError("no source")

    with pytest.raises(ValueError, match="no source"), compiling.beside(job):
        pass
    compiling.close()


@pytest.mark.parametrize("spare", [False, True])
def test_what_follows_is_chosen_while_the_pool_compiles_unless_a_core_is_spare(core: int, *, spare: bool) -> None:
    compiling, pool = ahead([core] if spare else [])
    done = list[int]()
    with compiling.beside_compiling(lambda: done.append(get_ident())):
        pass
    assert len(done) == (0 if spare else 1), "beside a measurement there is time for it on a spare core"
    assert get_ident() not in done
    assert pool.kept == [], "the pool keeps all cores"
    compiling.close()
