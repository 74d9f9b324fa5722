"""Arms in paired searches: what they share, and how a match goes on after a stop."""

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

from benchmarks.strategies import matches as played
from benchmarks.strategies.arms import ARMS, Arm
from benchmarks.strategies.matches import Setting, matches
from mlir_sched.corpus import Corpus
from mlir_sched.corpus.files import write_task
from mlir_sched.errors import Failure, FailureClass
from mlir_sched.models import SharedCostModel
from mlir_sched.outcome import Verdict
from mlir_sched.runner import RunResult
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.tuning.task_search import TaskSearch

SHAPES = {"first": (64, 96, 32), "second": (128, 64, 48)}
NEAR = (96, 96, 96)
"""A product that the corpus knows."""


class Heard:
    """What the arms and the last sessions were given, in their order."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, str]] = []
        self.known: list[list[str]] = []
        self.sessions: list[list[str]] = []

    def arm(self, name: str, strategy: str = "evolutionary") -> Arm:
        def begin(search: TaskSearch, model: SharedCostModel, corpus: Corpus, size: int) -> None:
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
    for name, shape in {"known": NEAR, "own": SHAPES["first"]}.items():
        dispatch = matmul_dispatch(*shape)
        files.append(tmp_path / f"{name}.jsonl.gz")
        write_task(
            files[-1],
            measured_task(
                [timed(trace, 1 + number) for number, trace in enumerate(draws(24, dispatch))], dispatch, key=name
            ),
        )

    def make(*arms: str, trials: int = 10, seeds: int = 2) -> Setting:
        return Setting(TARGET, arms, 2, trials, seeds, 4, tuple(files), tmp_path / "keep")

    return make


def test_arms_change_their_order_and_know_all_but_the_task_itself(
    heard: Heard, setting: Callable[..., Setting]
) -> None:
    found = list(matches(setting("scratch", "random")))
    assert [(match.task, match.seed) for match in found] == [("first", 0), ("second", 0), ("first", 1), ("second", 1)]
    first = [heard.begun[turn] for turn in (0, 2, 4, 6)]
    assert first == [("first", "scratch"), ("second", "random"), ("first", "random"), ("second", "scratch")]
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


def test_the_order_of_the_command_is_that_of_the_arms_whatever_was_asked_when_a_match_was_played(
    heard: Heard, setting: Callable[..., Setting]
) -> None:
    list(matches(setting("scratch", "random", seeds=1)))
    begun = len(heard.begun)
    found = list(matches(setting("random", "scratch", seeds=1)))
    assert [list(match.courses) for match in found] == [["random", "scratch"]] * 2
    assert len(heard.begun) == begun, "nothing is played again"


def test_arms_begin_with_what_near_tasks_say(
    heard: Heard, setting: Callable[..., Setting], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(played, "ARMS", ARMS)
    (match, *_) = matches(setting("scratch", "rows", "starts", "transfer", trials=4, seeds=1))
    scratch, rows, starts, both = (match.courses[arm].speedups for arm in match.courses)
    task = task_of("first", matmul_dispatch(*SHAPES["first"]))
    assert task.dispatch is not None
    space = DesignSpace(Space.default(TARGET), task.dispatch, TARGET)
    best = space.script(space.repaired(draws(24, matmul_dispatch(*NEAR))[-1]))
    assert starts[1] == both[1] == pytest.approx(speedup(task.key, best)), "the second candidate is the best elsewhere"
    assert starts[::2] == scratch[:2], "the others are its own"
    assert rows[0] != scratch[0], "the model was taught before its first candidate"


def test_the_arm_without_a_search_ends_after_three_candidates(
    heard: Heard, setting: Callable[..., Setting], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(played, "ARMS", ARMS)
    (match, *_) = matches(setting("scratch", "oneshot", seeds=1))
    course, first = match.courses["oneshot"], match.courses["scratch"]
    assert (len(course.speedups), len(first.speedups)) == (3, 10)
    assert course.timed[-1] == pytest.approx(2 * max(each for each in course.speedups if each))
