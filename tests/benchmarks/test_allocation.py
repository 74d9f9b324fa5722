"""The replay of recorded runs: what today's rules about time reach, without a compiler."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
from recorded_networks import SITE, recorded_network

from benchmarks.allocation.candidates import Course
from benchmarks.allocation.courses import EvenScheduler
from benchmarks.allocation.outcomes import Outcome, outcomes
from benchmarks.allocation.recorded import RecordedRun, read_run, recorded_runs, write_run
from benchmarks.allocation.replay import Replayed, best_s, replay
from mlir_sched.search import TaskProgress

NETWORK = recorded_network()
SOME_ORDERS = range(1, 6)


def write(run: RecordedRun, folder: Path) -> Path:
    path = folder / "run.json.gz"
    write_run(run, path)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(NETWORK, tmp_path)


def replays(path: Path, minutes: float, *, run: RecordedRun = NETWORK, speed: float = 1.0) -> list[Replayed]:
    return [replay(run, path, minutes=minutes, order=order, speed=speed) for order in SOME_ORDERS]


def test_a_recorded_run_is_read_as_it_was_written(path: Path) -> None:
    assert read_run(path) == NETWORK
    first = path.read_bytes()
    write_run(NETWORK, path)
    assert path.read_bytes() == first, "equal runs give equal files"


def test_a_file_of_another_format_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.allocation.recorded.FORMAT", 0)
    with pytest.raises(ValueError, match="not a recorded run of format 0"):
        read_run(path)


def test_a_replay_is_the_same_each_time_and_takes_no_time(path: Path) -> None:
    start = time.monotonic()
    assert replay(NETWORK, path, minutes=30, order=3) == replay(NETWORK, path, minutes=30, order=3)
    assert time.monotonic() - start < 30, "the clock of the machine is back, and has not passed an hour"
    assert len({replay(NETWORK, path, minutes=1, order=order).final_s for order in SOME_ORDERS}) > 1


@pytest.mark.parametrize("minutes", [1, 2, 5, 15])
@pytest.mark.parametrize("speed", [0.5, 1.0])
def test_a_run_ends_in_its_minutes(minutes: float, speed: float, path: Path) -> None:
    assert median(each.seconds for each in replays(path, minutes, speed=speed)) <= 1.05 * 60 * minutes


def test_more_minutes_make_a_program_faster_and_all_of_them_the_fastest_that_there_is(path: Path) -> None:
    courses = [replays(path, minutes) for minutes in (1, 2, 5, 30)]
    reached = [median(each.over_best for each in course) for course in courses]
    assert reached == sorted(reached, reverse=True)
    assert reached[0] > 1.05
    assert reached[-1] < 1.03
    assert min(each.over_best for course in courses for each in course) >= 1.0 - 1e-9
    tried = [median(each.tried for each in course) for course in courses]
    assert tried == sorted(tried)


def test_a_slow_machine_tries_fewer_candidates_in_the_same_minutes(path: Path) -> None:
    fast, slow = (median(each.tried for each in replays(path, 2, speed=speed)) for speed in (0.5, 2.5))
    assert slow < fast / 2


def test_the_plan_with_the_faster_dispatches_is_chosen_and_an_algorithm_that_pays(tmp_path: Path) -> None:
    assert all(
        each.plan.startswith(f"channels_last+winograd({SITE})") for each in replays(write(NETWORK, tmp_path), 15)
    )
    plain = recorded_network(algorithm_gain=0.5)
    assert {each.plan for each in replays(write(plain, tmp_path), 15, run=plain)} == {"channels_last"}
    worse = recorded_network(layout_gain=0.2)
    found = {each.plan for each in replays(write(worse, tmp_path), 15, run=worse)}
    assert not any(plan.startswith("channels_last") for plan in found)


def test_the_best_that_there_is_counts_plans_algorithms_and_candidates() -> None:
    with_algorithm, without = best_s(NETWORK), best_s(recorded_network(algorithm_gain=0.5))
    assert with_algorithm < without
    (task,) = [task for task in NETWORK.tasks if task.key == "l1"]
    ratios = [each.ratio for each in task.candidates if each.ratio]
    slower = replace(task, candidates=())
    others = tuple(slower if each is task else each for each in NETWORK.tasks)
    lost_s = task.untuned_s * (1 - 1 / max(ratios)) if task.untuned_s else 0.0
    assert best_s(replace(NETWORK, tasks=others)) == pytest.approx(with_algorithm + lost_s)


def test_a_task_with_the_code_of_another_has_its_times() -> None:
    task = NETWORK.tasks[0]
    assert task.untuned_s is not None
    same = replace(task, key="same", untuned_s=2 * task.untuned_s, candidates=(), course_of=task.key)
    found = replace(NETWORK, tasks=(*NETWORK.tasks, same)).with_course(same)
    assert [each.ratio for each in found.candidates] == [each.ratio and 2 * each.ratio for each in task.candidates]


def test_another_order_keeps_the_trend_of_a_course_and_is_flat_behind_its_end() -> None:
    task = NETWORK.tasks[0]
    numbered = tuple(replace(each, seconds=float(i)) for i, each in enumerate(task.candidates))
    places = [each.seconds for each in Course.of(replace(task, candidates=numbered), 1).candidates]
    own = places[: len(numbered)]
    assert sorted(own) == [each.seconds for each in numbered]
    assert own != sorted(own)
    assert max(abs(place - index) for index, place in enumerate(own)) < 16
    assert all(each.ratio is None for each in Course.of(task, 1).candidates[len(numbered) :])
    ended = Course.of(replace(task, exhausted=True), 0)
    assert ended.candidates == task.candidates


def test_every_task_gets_as_many_candidates_until_each_has_enough() -> None:
    scheduler = EvenScheduler(16)
    assert scheduler.next_task([TaskProgress(1.0, (None,), (8,)), TaskProgress(9.0)]) == 1
    assert scheduler.next_task([TaskProgress(1.0, (None,), (8,)), TaskProgress(9.0, (1.0,), (16,))]) == 0
    assert scheduler.next_task([TaskProgress(1.0, (None,), (8,), exhausted=True)]) is None


def test_outcomes_say_what_all_replays_of_a_budget_came_to(path: Path) -> None:
    short, long = outcomes({"machine/drawn-1": path}, (1.0, 5.0), (1.0, 2.5), 2, workers=1)
    assert (short.name, short.minutes, len(short.over_best)) == ("machine/drawn-1", 1.0, 4)
    assert short.figure.median is not None
    assert long.figure.median is not None
    assert short.figure.median > long.figure.median
    assert short.figure.told_apart


@pytest.mark.parametrize("name", recorded_runs())
def test_recorded_networks_end_near_their_best_within_their_minutes(name: str) -> None:
    path = recorded_runs()[name]
    run = read_run(path)
    found = {minutes: [replay(run, path, minutes=minutes, order=order) for order in (1, 2, 3)] for minutes in (2, 30)}
    short, long = (median(each.over_best for each in found[minutes]) for minutes in (2, 30))
    assert 1.0 - 1e-9 <= long <= short
    for minutes, each in found.items():
        assert median(one.seconds for one in each) <= 1.1 * 60 * minutes


def test_a_run_is_late_by_more_than_a_share_of_its_minutes_and_by_more_than_seconds() -> None:
    whole = (0.99, 1.02, 1.04, 1.2)
    assert [Outcome("a run", minutes, (), whole, ()).late for minutes in (1.0, 5.0, 30.0)] == [1, 2, 2]
