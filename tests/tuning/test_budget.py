"""How a budget is divided: between programs, between rungs, and between the tasks of a program."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from mlir_sched.tuning.budget import (
    CHOICE_SHARE,
    EXPLORATION,
    FIRST_ROUND,
    LEAST_RUN,
    Allowance,
    Budget,
    RungTurn,
    SearchProgress,
    too_short,
)
from mlir_sched.tuning.ledger import End, Ledger
from mlir_sched.tuning.options import DEFAULT_TRIALS_PER_TASK, TuneOptions

BY_TRIALS = Budget(round_size=8, trials=64)
BY_TIME = Budget(round_size=8, trials=None, seconds=100.0, begun_s=20.0)
AMID = SearchProgress(tried=10, now_s=50.0, tasks=2, reached=True, begun=False)


def test_without_a_budget_every_task_of_the_variant_with_most_has_a_number_of_trials() -> None:
    assert Budget.of(TuneOptions(), tasks=3, begun_s=0.0).trials == 3 * DEFAULT_TRIALS_PER_TASK
    assert Budget.of(TuneOptions(trials=5), tasks=3, begun_s=0.0).trials == 5


@pytest.mark.parametrize(("programs", "rungs"), [(1, 2), (2, 2), (4, 2), (5, 3), (8, 3), (9, 4)])
def test_all_rungs_together_have_the_share_of_exploration(programs: int, rungs: int) -> None:
    last = RungTurn(programs, rungs - 1, programs=2, place=1)
    assert BY_TIME.allowance(last, own=0, elsewhere=0).until_s == pytest.approx(20.0 + EXPLORATION * 80.0)


@pytest.mark.parametrize(("trials", "explored"), [(1, 1), (31, 1), (32, 2), (64, 4), (1000, 5)])
def test_a_program_is_explored_where_there_is_a_round_for_it(trials: int, explored: int) -> None:
    assert replace(BY_TRIALS, trials=trials).explored(5) == explored
    assert BY_TIME.explored(5) == 5


def test_turns_by_time_follow_each_other_from_the_beginning_of_the_search_to_half_of_its_time() -> None:
    turns = [*(RungTurn(4, 0, 4, place) for place in range(4)), *(RungTurn(4, 1, 2, place) for place in range(2))]
    ends = [BY_TIME.allowance(turn, own=0, elsewhere=0).until_s for turn in turns]
    assert ends == [25.0, 30.0, 35.0, 40.0, 50.0, 60.0]
    assert BY_TIME.rest(elsewhere=0).until_s == 100.0


def test_a_search_that_begins_when_the_time_is_over_has_none() -> None:
    late = replace(BY_TIME, begun_s=130.0)
    assert late.allowance(RungTurn(4, 0, 4, 3), own=0, elsewhere=0).until_s == 130.0


def test_a_turn_by_trials_has_whole_rounds_and_never_more_than_is_left() -> None:
    turn = RungTurn(explored=2, rung=0, programs=2, place=0)
    assert BY_TRIALS.allowance(turn, own=0, elsewhere=0).trials == 8
    assert BY_TRIALS.allowance(replace(turn, programs=4), own=8, elsewhere=16).trials == 16
    assert BY_TRIALS.allowance(turn, own=8, elsewhere=50).trials == 14
    assert replace(BY_TRIALS, trials=160).allowance(turn, own=3, elsewhere=0).trials == 3 + 16
    assert BY_TRIALS.rest(elsewhere=24).trials == 40


def test_half_of_the_programs_is_left_after_a_rung_and_one_when_exploration_ends() -> None:
    first, second = RungTurn(5, 0, 5, 4), RungTurn(5, 2, 3, 2)
    assert [BY_TIME.kept(last, tried=10**6) for last in (first, second)] == [3, 1]
    assert [BY_TRIALS.kept(first, tried=tried) for tried in (31, 32)] == [3, 1]


def test_a_round_is_whole_or_what_is_left_of_the_trials() -> None:
    allowance = Allowance(8, trials=16)
    assert [allowance.next_round(replace(AMID, tried=tried)) for tried in (0, 8, 10, 16, 20)] == [8, 8, 6, 0, 0]


@pytest.mark.parametrize(("tasks", "candidates"), [(1, 8), (2, 4), (3, 2), (4, 2), (50, 2)])
def test_tasks_share_a_round_at_first(tasks: int, candidates: int) -> None:
    first = replace(AMID, tried=0, tasks=tasks, reached=False)
    assert Allowance(8, trials=64).next_round(first) == candidates
    assert Allowance(8, None, until_s=60.0).next_round(first) == (8 if tasks == 1 else FIRST_ROUND)
    assert Allowance(1, trials=64).next_round(first) == 1, "never more than a round"


def test_a_part_by_time_ends_at_its_time_but_for_a_round_that_was_begun() -> None:
    allowance = Allowance(8, None, until_s=50.0)
    assert allowance.next_round(AMID) == 0
    assert allowance.next_round(replace(AMID, now_s=49.9)) == 8
    assert allowance.next_round(replace(AMID, begun=True)) == 8


def test_a_part_by_time_that_ended_before_ends_after_the_same_candidates() -> None:
    allowance = Allowance(8, None, until_s=0.0, ended=16)
    assert [allowance.next_round(replace(AMID, tried=tried, begun=True)) for tried in (8, 15, 16)] == [8, 8, 0]


def test_a_part_that_ended_before_is_over_in_time_where_other_candidates_are_measured() -> None:
    allowance = Allowance(8, None, until_s=50.0, ended=16)
    diverged = [replace(AMID, tried=8, now_s=now_s, diverged=True) for now_s in (49.0, 50.0)]
    assert [allowance.next_round(progress) for progress in diverged] == [8, 0]
    assert allowance.next_round(replace(AMID, tried=8, now_s=50.0)) == 8


def test_by_time_half_of_what_is_left_is_for_untuned_code() -> None:
    assert Allowance(8, None, until_s=50.0).untuned_until_s(20.0) == 35.0
    assert Allowance(8, trials=3).untuned_until_s(20.0) == math.inf


def test_a_round_on_slow_code_is_small_in_a_run_by_time() -> None:
    assert [BY_TIME.most_of_round(candidate_s) for candidate_s in (0.25, 1.25, 75.0)] == [8, 6, FIRST_ROUND]
    assert BY_TRIALS.most_of_round(75.0) == 8


def test_finalists_that_take_longer_end_the_search_sooner() -> None:
    budget = Budget.of(TuneOptions(minutes=2), tasks=3, begun_s=5.0, end=End(9.0, 12.0))
    assert budget.seconds == 120.0 - 9.0 - 12.0


def test_finalists_have_the_time_that_emission_does_not_need() -> None:
    budget = replace(BY_TIME, whole_s=150.0)
    assert budget.finalists_s(spent_s=104.0, emission_s=12.0) == 34.0
    assert budget.finalists_s(spent_s=149.0, emission_s=12.0) == 0.0
    assert BY_TRIALS.finalists_s(spent_s=1e6, emission_s=12.0) == math.inf


def test_a_search_goes_on_when_the_end_needs_less_than_was_set_aside() -> None:
    budget, end = replace(BY_TIME, whole_s=150.0), End(14.0, reports_s=6.0)
    assert budget.review(end, now_s=101.0, candidate_s=0.0) == (130.0, FIRST_ROUND), "no pace is known"
    with_choices = replace(end, choices_s=5.0)
    assert budget.review(with_choices, now_s=100.0, candidate_s=2.0) == (125.0, 12)
    assert budget.review(with_choices, now_s=130.0, candidate_s=2.0) == (125.0, 0)
    assert budget.review(replace(end, emission_s=60.0), now_s=100.0, candidate_s=2.0) == (100.0, 0)


def test_choices_among_finalists_get_a_small_share_of_the_whole_time() -> None:
    budget, end = replace(BY_TIME, whole_s=150.0), End(14.0, reports_s=24.0, choices_s=15.0)
    assert budget.review(end, now_s=80.0, candidate_s=1.5)[0] == 150.0 - 14.0 - 24.0 - CHOICE_SHARE * 150.0


@pytest.mark.parametrize(("least_s", "end_s"), [(10.0, 80.0), (50.0, 70.0), (90.0, 60.0)])
def test_what_emission_takes_at_least_is_set_aside_even_beyond_a_third_of_the_minutes(
    least_s: float, end_s: float
) -> None:
    end = End(95.0, least_s=least_s)
    assert Budget.of(TuneOptions(minutes=2), tasks=3, begun_s=30.0, end=end).seconds == end_s
    assert replace(BY_TIME, whole_s=120.0).review(end, now_s=50.0, candidate_s=1.0)[0] == end_s


def test_the_end_of_the_search_by_time_is_set_anew_before_it_comes() -> None:
    assert BY_TIME.before_review(elsewhere=0, now_s=50.0).until_s == 85.0
    assert BY_TRIALS.before_review(elsewhere=8, now_s=50.0) == BY_TRIALS.rest(elsewhere=8)


def test_only_trials_may_be_left_when_nothing_is_left_to_try() -> None:
    assert [BY_TRIALS.has_trials(tried) for tried in (63, 64)] == [True, False]
    assert not BY_TIME.has_trials(0)


def test_the_time_that_is_left_is_known_by_time_and_estimated_by_trials() -> None:
    assert BY_TIME.left_s(tried=0, here_s=1.0, now_s=30.0) == 70.0
    assert BY_TIME.left_s(tried=0, here_s=1.0, now_s=130.0) == 0.0
    assert BY_TRIALS.left_s(tried=0, here_s=1.0, now_s=1.0) is None
    assert BY_TRIALS.left_s(tried=16, here_s=10.0, now_s=1000.0) == 30.0


def test_minutes_in_which_little_more_than_the_plain_program_is_proven_are_too_few_and_enough_are_named() -> None:
    ledger = Ledger(build_s=20.0, call_s=0.05)
    least = LEAST_RUN * ledger.plain_s / 60
    told = too_short(0.99 * least, ledger)
    assert re.search(r"^\d min \d+ s is short: .* takes about \d+ s; [\d.]+ minutes or more", told)
    enough = float(told.split(" minutes")[0].split()[-1])
    assert least <= enough <= least + 0.1
    assert [too_short(minutes, ledger) for minutes in (enough, None)] == ["", ""]
