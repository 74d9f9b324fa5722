"""What follows from matches: how far an arm is behind, how it compares with another one, and what becomes of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Figure, ResultTable
from benchmarks.strategies import command, live
from benchmarks.strategies.arms import ARMS, Arm
from benchmarks.strategies.live import Played, comparisons, results_table
from benchmarks.strategies.matches import Course, Match
from benchmarks.strategies.verdict import Gate
from mlir_sched.errors import UserError


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


def test_a_note_says_what_is_left_where_the_untuned_code_counts() -> None:
    found = match(scratch=course(0.5, 0.8, timed=(0.8, 2.0)), other=course(0.5, 2.0, timed=(2.0, 4.0)))
    other = Played(found, "other")
    assert [other.against("scratch", 0, least).ratio for least in (0.0, 1.0)] == [0.4, 0.5]
    table = shown([match(scratch=course(0.5, 0.8, timed=(0.8,)), random=course(0.5, 2.0, timed=(2.0,)))])
    assert "random where the untuned code counts, too: 0.50 at 2" in table.notes
    least = "With the best of all arms as its first candidate, an arm would be at 0.40 at 2 over scratch."
    assert least in table.notes, "0.8 over 2.0"


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
    assert "random: random; what is asked of it over scratch: at most 0.9 at 24" in table.notes
    assert cells(table, "random")["verdict"] == "option"
    assert "1.20 on softmax after 24 trials" in " ".join(table.notes)


def test_fewer_trials_have_no_verdict() -> None:
    few = [match(scratch=course(1.0, 2.0, timed=(2.0,)), random=course(1.0, 1.0, timed=(1.0,)))]
    found = cells(shown(few), "random")
    assert found["verdict"] is None
    assert found["over scratch at 2"].median == 2.0
    assert comparisons(few, "random", "scratch").keys() == {2}


def test_what_does_not_fit_ends_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other.json").write_text("[1]")
    for options, why in (
        (["scratch"], "named twice"),
        (["--tasks", "0"], "at least a task"),
        (["--trials", "1"], "2 trials are needed"),
        (["--networks", str(tmp_path / "nothing.json")], "nothing.json is not what `strategies networks --json` wrote"),
        (["--networks", str(tmp_path / "other.json")], "other.json is not what"),
    ):
        monkeypatch.setattr(sys, "argv", ["strategies", "live", "scratch", *options])
        with pytest.raises(UserError, match=why):
            command.main()


def test_a_gate_of_trials_is_judged_by_those_until_near_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "ARMS", {**ARMS, "random": Arm("random", gate=Gate(trials=0.9))})
    networks = {"random": [(0.9, 0.95), (0.99, 1.02)]}
    table = shown(many(0.8), networks)
    assert cells(table, "random")["verdict"] == "default", "scratch comes near in no match"
    assert "random: random; what is asked of it over scratch: at most 0.9 of its trials to 5 %" in table.notes
    later = [
        replace(each, courses={"scratch": each.courses["random"], "random": each.courses["scratch"]})
        for each in many(0.8)
    ]
    table = shown(later, networks)
    assert cells(table, "random")["verdict"] == "option"
    assert "48.00 of the trials until near the best, where the gate asks for 0.9" in " ".join(table.notes)


@pytest.mark.parametrize(("timed", "verdict"), [((1.0,) * 3, None), ((1.0,) * 4, "option")])
def test_an_arm_is_judged_where_the_trials_of_its_gate_were_reached(
    timed: tuple[float, ...], verdict: str | None
) -> None:
    trials = 24 if len(timed) == 3 else 64
    found = [match(scratch=course(*[1.0] * trials, timed=timed), oneshot=course(*[0.9] * 3, timed=timed))]
    assert cells(shown(found), "oneshot")["verdict"] == verdict
