"""Arms in paired searches: what they share, how a match goes on after a stop, and what follows from matches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from measured_tasks import draws, measured_task, timed
from replayed_run import TARGET, HashedMeasurements, matmul_dispatch, task_of
from speedups import timing

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Figure, ResultTable
from benchmarks.strategies import live
from benchmarks.strategies import matches as played
from benchmarks.strategies.arms import ARMS, Arm
from benchmarks.strategies.live import Played, comparisons, results_table
from benchmarks.strategies.matches import Course, Match, Setting, matches
from benchmarks.strategies.verdict import Gate
from mlir_sched.corpus import Corpus
from mlir_sched.corpus.files import write_task
from mlir_sched.errors import Failure, FailureClass
from mlir_sched.models import SharedCostModel
from mlir_sched.outcome import Verdict
from mlir_sched.runner import RunResult
from mlir_sched.tuning.task_search import TaskSearch

SHAPES = {"first": (64, 96, 32), "second": (128, 64, 48)}


class Heard:
    """What the arms and the last sessions were given, in their order."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, str]] = []
        self.known: list[list[str]] = []
        self.sessions: list[list[str]] = []

    def arm(self, name: str, strategy: str = "evolutionary") -> Arm:
        def begin(search: TaskSearch, model: SharedCostModel, corpus: Corpus) -> None:
            self.begun.append((search.task.name, name))
            self.known.append([task.name for task in corpus.tasks])

        return Arm(name, begin, strategy)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Heard:
    """Have two products searched without a compiler; every candidate is twice as fast in the last session."""
    made = Heard()

    def compiled(groups: Sequence[tuple[Any, Sequence[str]]], pool: object) -> list[list[str]]:
        return [["untuned", *scripts] for _, scripts in groups]

    def measured(task: Any, code: Sequence[str], chosen: Sequence[int], runner: object) -> tuple[Any, list[RunResult]]:
        made.sessions.append([code[index + 1] for index in chosen])
        found = [
            RunResult(timing(1e-3, 2 * speedup(task.key, code[i + 1])), None, verdict=Verdict.RIGHT) for i in chosen
        ]
        return timing(1e-3, 1.0), found

    patches = {
        "HELD_OUT": {"products": {name: name for name in SHAPES}},
        "FAMILY": dict.fromkeys(SHAPES, "products"),
        "TASKS": tuple(SHAPES),
        "ARMS": {
            "scratch": made.arm("scratch"),
            "same": made.arm("same"),
            "random": made.arm("random", "random"),
        },
        "CompileAndRun": lambda *_: nullcontext(HashedMeasurements(tmp_path / "log")),
        "CompilerPool": lambda *_, **__: nullcontext(),
        "Runner": lambda *_: nullcontext(),
        "task_of": lambda text, target: task_of(text, matmul_dispatch(*SHAPES[text])),
        "compile_scripts": compiled,
        "measure_compiled": measured,
    }
    for name, value in patches.items():
        monkeypatch.setattr(played, name, value)
    played._task.cache_clear()
    return made


def speedup(task: str, script: str) -> float:
    """Return what :class:`HashedMeasurements` measures of a script."""
    return 0.5 + (int(hashlib.sha256((task + script).encode()).hexdigest()[:8], 16) % 1000) / 1000


def measured(tmp_path: Path) -> list[str]:
    """Return the digests of what was measured, in order."""
    return [line.split()[1] for line in (tmp_path / "log").read_text().splitlines()]


@pytest.fixture
def setting(tmp_path: Path) -> Callable[..., Setting]:
    """Return a function that makes a small setting, with a corpus of the first task and of another one."""
    files = []
    for name, shape in {"known": (96, 96, 96), "own": SHAPES["first"]}.items():
        dispatch = matmul_dispatch(*shape)
        files.append(tmp_path / f"{name}.jsonl.gz")
        write_task(files[-1], measured_task([timed(trace) for trace in draws(2, dispatch)], dispatch, key=name))

    def make(*arms: str, trials: int = 10, seeds: int = 2) -> Setting:
        return Setting(TARGET, arms, 2, trials, seeds, 4, tuple(files), tmp_path / "keep")

    return make


def test_arms_change_their_order_and_know_all_but_the_task_itself(
    heard: Heard, setting: Callable[..., Setting]
) -> None:
    found = list(matches(setting("scratch", "random")))
    assert [(match.task, match.seed) for match in found] == [("first", 0), ("second", 0), ("first", 1), ("second", 1)]
    assert [arm for _, arm in heard.begun] == ["scratch", "random", "random", "scratch"] * 2
    assert [list(match.courses) for match in found] == [["scratch", "random"]] * 4
    assert [len(known) for known in heard.known[:4]] == [1, 1, 2, 2]


def test_arms_share_the_times_of_equal_candidates_and_each_has_its_own_search(
    heard: Heard, setting: Callable[..., Setting], tmp_path: Path
) -> None:
    (match, *_) = matches(setting("scratch", "same", seeds=1))
    assert match.courses["scratch"].speedups == match.courses["same"].speedups
    assert len(match.courses["scratch"].speedups) == 10
    digests = measured(tmp_path)
    assert len(digests) == len(set(digests)) == 20, "two tasks, of which each candidate is measured once"


def test_the_best_after_some_trials_are_timed_side_by_side_each_once(
    heard: Heard, setting: Callable[..., Setting]
) -> None:
    (match, *_) = matches(setting("scratch", "random", seeds=1))
    for course in match.courses.values():
        best = [max(each for each in course.speedups[:trials] if each) for trials in (2, 8)]
        assert course.timed == pytest.approx([2 * each for each in best])
    assert len(heard.sessions[0]) == len(set(heard.sessions[0])) <= 4


def test_what_fails_when_it_is_timed_again_keeps_the_time_of_its_search(
    heard: Heard, setting: Callable[..., Setting], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = RunResult(None, Failure(FailureClass.RUN_ERROR, "planted"))
    monkeypatch.setattr(played, "measure_compiled", lambda _, code, chosen, __: (None, [failed for _ in chosen]))
    (match, *_) = matches(setting("scratch", seeds=1))
    course = match.courses["scratch"]
    assert course.timed[1] == max(each for each in course.speedups[:8] if each)


def test_a_comparison_that_was_killed_goes_on_and_measures_nothing_twice(
    heard: Heard, setting: Callable[..., Setting], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = setting("scratch", "random", seeds=1)
    whole = [match.courses for match in matches(Setting(**{**vars(asked), "keep": tmp_path / "whole"}))]
    needed = measured(tmp_path)
    (tmp_path / "log").unlink()
    evaluate = HashedMeasurements.evaluate

    def killed(self: HashedMeasurements, *arguments: Any) -> Any:
        for found in evaluate(self, *arguments):
            if len(measured(tmp_path)) == 27:
                raise KeyboardInterrupt
            yield found

    monkeypatch.setattr(HashedMeasurements, "evaluate", killed)
    with pytest.raises(KeyboardInterrupt):
        list(matches(asked))
    monkeypatch.setattr(HashedMeasurements, "evaluate", evaluate)
    begun = len(heard.begun)
    again = [match.courses for match in matches(asked)]
    assert len(heard.begun) - begun == 2, "the first match was done"
    assert [(c.speedups, c.timed) for each in again for c in each.values()] == [
        (c.speedups, c.timed) for each in whole for c in each.values()
    ]
    lost = [digest for digest in measured(tmp_path) if measured(tmp_path).count(digest) > 1]
    assert len(set(lost)) <= 1, "the candidate whose outcome was not stored"
    assert set(measured(tmp_path)) == set(needed)


def test_a_match_with_other_arms_is_played_again_with_what_is_measured(
    heard: Heard, setting: Callable[..., Setting], tmp_path: Path
) -> None:
    list(matches(setting("scratch", seeds=1)))
    before = measured(tmp_path)
    (match, *_) = matches(setting("scratch", "same", seeds=1))
    assert list(match.courses) == ["scratch", "same"]
    assert measured(tmp_path) == before


def course(*speedups: float | None, timed: tuple[float | None, ...] = (), overhead_s: float = 1.0) -> Course:
    return Course(speedups, timed, overhead_s)


def match(seed: int = 0, task: str = "a", family: str = "products", **courses: Course) -> Match:
    return Match(task, family, seed, courses)


def test_a_course_is_behind_the_best_of_all_arms_in_the_end() -> None:
    found = match(scratch=course(1.0, 2.0, 2.0), other=course(None, 3.9, 4.0))
    scratch, other = Played(found, "scratch"), Played(found, "other")
    assert [scratch.behind(n) for n in (1, 2, 3)] == [4.0, 2.0, 2.0]
    assert [other.behind(n) for n in (1, 2, 3)] == [4.0, pytest.approx(4 / 3.9), 1.0], "the slowest in place of none"
    assert (scratch.trials_to_near(), other.trials_to_near()) == (6, 2)


def test_an_arm_without_a_valid_candidate_counts_as_the_slowest() -> None:
    found = match(
        scratch=course(1.0, timed=(1.0, 2.0)), other=course(1.0, timed=(None, 4.0)), bad=course(timed=(0.5, 1.0))
    )
    other = Played(found, "other")
    assert [other.against("scratch", at).ratio for at in (0, 1)] == [2.0, 0.5]


def test_nothing_is_known_of_arms_that_all_fail() -> None:
    found = match(scratch=course(None, timed=(None,)), other=course(None, timed=(None,)))
    assert Played(found, "other").behind(1) == 1.0
    assert Played(found, "other").against("scratch", 0).ratio == 1.0


def many(ratio: float, **families: float) -> list[Match]:
    """Return matches in which the second arm takes so many times as long, or what a family says."""
    return [
        match(
            seed,
            f"{family} {task}",
            family,
            scratch=course(*[1.0] * 24, timed=(1.0, 1.0, 1.0)),
            random=course(*[1 / ratio] * 24, timed=(1 / families.get(family, ratio),) * 3, overhead_s=3.0),
        )
        for seed in range(2)
        for family in ("products", "softmax")
        for task in range(4)
    ]


def shown(found: Sequence[Match], networks: Any = ()) -> ResultTable:
    return results_table(found, dict(networks), "nothing", Publishing(None, (), "command"))


def cells(table: ResultTable, arm: str) -> dict[str, Any]:
    return dict(zip((column.title for column in table.columns), dict(table.rows)[arm], strict=True))


def test_the_table_compares_with_the_first_arm_and_judges() -> None:
    found = cells(shown(many(0.8, softmax=0.9)), "random")
    at = found["over scratch at 24"]
    assert isinstance(at, Figure)
    assert at.median == pytest.approx((0.8 * 0.9) ** 0.5, rel=1e-4)
    assert at.low is not None
    assert at.high is not None
    assert 0.8 < at.low < 0.83 < 0.87 < at.high < 0.9
    assert found["worst family"] == "0.90, softmax"
    assert found["overhead"].median == 3.0
    assert (found["after 1"].median, cells(shown(many(0.8)), "scratch")["after 24"].median) == (1.0, 1.25)
    assert found["verdict"] == "option", "no network was measured"
    assert cells(shown(many(0.8)), "scratch")["verdict"] is None


def test_networks_decide_on_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "ARMS", {**ARMS, "random": Arm("random", gate=Gate({24: 0.9}))})
    better = {"random": [(0.9, 0.95), (0.99, 1.02)]}
    assert cells(shown(many(0.8), better), "random")["verdict"] == "default"
    table = shown(many(0.8, softmax=1.2), better)
    assert cells(table, "random")["verdict"] == "option"
    assert "1.20 on softmax after 24 trials" in " ".join(table.notes)


def test_fewer_trials_have_no_verdict() -> None:
    few = [match(scratch=course(1.0, 2.0, timed=(2.0,)), random=course(1.0, 1.0, timed=(1.0,)))]
    found = cells(shown(few), "random")
    assert found["verdict"] is None
    assert found["over scratch at 2"].median == 2.0
    assert comparisons(few, "random", "scratch").keys() == {2}
