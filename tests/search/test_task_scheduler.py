"""The choice of the next round's task, and what further candidates are expected to save, on courses that are known."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from mlir_sched.search import Demand, GradientOptions, GradientScheduler, RoundRobinScheduler, TaskProgress
from mlir_sched.search.task_scheduler import DOUBT, GUESS, IMPROVEMENTS, expected_saving_s, seconds_at_best_rates
from mlir_sched.testing import SchedulerTests


class TestGradient(SchedulerTests):
    def make(self) -> GradientScheduler:
        return GradientScheduler()


class TestRoundRobin(SchedulerTests):
    def make(self) -> RoundRobinScheduler:
        return RoundRobinScheduler()


class Simulation:
    """Tasks whose best time after each round is known beforehand."""

    def __init__(
        self,
        curves: list[list[float | None]],
        weights: list[float],
        scheduler: GradientScheduler | None = None,
        demands: list[Demand] | None = None,
    ) -> None:
        self.scheduler = scheduler or GradientScheduler()
        self.demands: Sequence[Demand | None] = demands or [None] * len(curves)
        self.curves = curves
        self.weights = weights
        self.rounds = [0] * len(curves)
        self.chosen: list[int] = []

    def run(self, rounds: int) -> list[int]:
        for _ in range(rounds):
            tasks = [
                TaskProgress(weight, tuple((curve + curve[-1:] * rounds)[:spent]), demand=demand)
                for curve, weight, spent, demand in zip(
                    self.curves, self.weights, self.rounds, self.demands, strict=True
                )
            ]
            choice = self.scheduler.next_task(tasks)
            assert choice is not None
            self.rounds[choice] += 1
            self.chosen.append(choice)
        return self.rounds


def test_no_task_or_only_exhausted_ones_gives_none() -> None:
    assert GradientScheduler().next_task([]) is None
    assert (
        GradientScheduler().next_task([TaskProgress(1.0, (1.0,), exhausted=True), TaskProgress(1.0, exhausted=True)])
        is None
    )


def test_an_exhausted_task_is_never_chosen() -> None:
    assert GradientScheduler().next_task([TaskProgress(9.0, exhausted=True), TaskProgress(1.0, (1.0, 1.0))]) == 1


def test_every_task_gets_a_round_before_any_gets_two() -> None:
    simulation = Simulation([[5.0], [1.0], [9.0]], [1.0, 100.0, 1.0])
    simulation.run(3)
    assert sorted(simulation.chosen) == [0, 1, 2]


@pytest.mark.parametrize(("untuned_s", "chosen"), [(0.5, 0), (50.0, 1)])
def test_a_task_with_known_untuned_code_waits_while_another_gains_more(untuned_s: float, chosen: int) -> None:
    assert GradientScheduler().next_task(
        [TaskProgress(1.0, (10.0,), (4,)), TaskProgress(1.0, untuned_s=untuned_s)]
    ) == (chosen)
    unknown = [TaskProgress(1.0, (10.0,), (4,)), TaskProgress(1.0, untuned_s=untuned_s), TaskProgress(1.0)]
    assert GradientScheduler().next_task(unknown) == 2


def test_a_first_valid_candidate_comes_before_further_gains() -> None:
    simulation = Simulation([[None, None, None, 2.0], [100.0]], [1.0, 1.0])
    simulation.run(5)
    assert simulation.chosen == [0, 1, 0, 0, 0]


def test_hope_is_per_candidate_so_that_a_task_with_a_short_round_comes_first() -> None:
    tasks = [
        TaskProgress(1.0, (80.0, 70.0), (2, 10)),
        TaskProgress(1.0, (15.0,), (2,)),
        TaskProgress(1.0, (13.0,), (2,)),
    ]
    scheduler = GradientScheduler(GradientOptions(alpha=0.0))
    assert [scheduler.gain(task) for task in tasks] == [7.0, 7.5, 6.5]
    assert scheduler.next_task(tasks) == 1


def test_a_task_without_valid_candidates_neither_starves_nor_eats_the_budget() -> None:
    rounds = Simulation([[None], [10.0], [10.0], [10.0]], [1.0] * 4).run(200)
    assert 20 <= rounds[0] <= 30


def test_heavy_and_slow_tasks_get_more_rounds() -> None:
    weight = Simulation([[1.0], [1.0]], [1.0, 9.0]).run(100)
    slow = Simulation([[1.0], [9.0]], [1.0, 1.0]).run(100)
    assert weight == slow
    assert weight[1] > 2 * weight[0] > 0


def test_a_task_that_improves_gets_more_rounds_than_one_that_does_not() -> None:
    falling: list[float | None] = [1.0 / (1 + 0.3 * index) + 0.5 for index in range(100)]
    rounds = Simulation([[1.5], falling], [1.0, 1.0]).run(30)
    flat = Simulation([[1.5], falling], [1.0, 1.0], GradientScheduler(GradientOptions(alpha=0.0))).run(30)
    assert rounds[1] > flat[1]


def test_the_gain_is_that_of_the_formula() -> None:
    task = TaskProgress(2.0, (9.0, 7.0, 5.0, 4.0))
    expected = 2.0 * (0.2 * (9.0 - 4.0) / 3 + 0.8 * 4.0 / 4)
    assert GradientScheduler().gain(task) == pytest.approx(expected)


def test_a_gain_is_never_negative() -> None:
    for task in (TaskProgress(1.0, (1.0,)), TaskProgress(1.0, (None, 1.0)), TaskProgress(0.5, (2.0, 2.0, 2.0))):
        assert GradientScheduler().gain(task) >= 0


def test_a_task_below_the_rate_of_similar_tasks_comes_before_one_that_has_reached_it() -> None:
    slow, fast = Demand("product", 10.0, 0.0), Demand("product", 40.0, 0.0)
    tasks = [TaskProgress(1.0, (5.0,), (8,), demand=slow), TaskProgress(1.0, (8.0,), (8,), demand=fast)]
    assert seconds_at_best_rates([(task.demand, task.latest_s) for task in tasks]) == [2.0, 8.0]
    assert GradientScheduler().next_task(tasks) == 0
    assert GradientScheduler(GradientOptions(trust=0.0)).next_task(tasks) == 1


def test_similarity_lowers_the_hope_and_never_below_what_is_not_trusted() -> None:
    scheduler, task = GradientScheduler(GradientOptions(trust=0.75)), TaskProgress(2.0, (4.0, 4.0))
    assert scheduler.gain(task) == pytest.approx(2.0 * 0.8 * 4.0 / 2)
    assert scheduler.gain(task, 2.0) == pytest.approx(2.0 * 0.8 * 2.5 / 2)
    assert scheduler.gain(task, 4.0) == scheduler.gain(task, 9.0) == pytest.approx(2.0 * 0.8 * 1.0 / 2)


def test_the_larger_of_both_times_counts_for_tasks_that_arithmetic_or_memory_binds() -> None:
    arithmetic, memory, both = (Demand("product", *numbers) for numbers in ((100.0, 1.0), (2.0, 10.0), (50.0, 20.0)))
    assert seconds_at_best_rates([(arithmetic, 1.0), (memory, 2.0), (both, 9.0)]) == [1.0, 2.0, 4.0]


def test_tasks_that_only_move_data_are_compared_by_what_they_move() -> None:
    assert seconds_at_best_rates([(Demand("copy", 0.0, 8.0), 1.0), (Demand("copy", 0.0, 4.0), 3.0)]) == [1.0, 0.5]


def test_without_a_similar_task_that_has_a_time_nothing_is_expected() -> None:
    alone, other = Demand("product", 10.0, 1.0), Demand("reduction", 10.0, 1.0)
    assert seconds_at_best_rates([(alone, 1.0), (other, 1.0), (None, 1.0), (alone, None)]) == [0.0] * 4
    assert seconds_at_best_rates([]) == []


@pytest.mark.parametrize("trust", [0.7, 0.9])
def test_no_similar_task_starves(trust: float) -> None:
    """The first has reached the best rate, the second never reaches it, and the others are at it and take less time."""
    demands = [Demand("product", operations, 0.0) for operations in (100.0, 100.0, 10.0, 1.0)]
    curves: list[list[float | None]] = [[1.0], [50.0], [0.1], [0.01]]
    scheduler = GradientScheduler(GradientOptions(trust=trust))
    rounds = Simulation(curves, [1.0] * 4, scheduler, demands).run(2000)
    without = Simulation(curves, [1.0] * 4, GradientScheduler(GradientOptions(trust=0.0)), demands).run(2000)
    assert rounds[1] == max(rounds) < 2000
    least = [(1 - trust) * before for before in without]  # rounds are in proportion to hopes, which fall to 1 - trust
    assert all(spent > 0.9 * rounds_at_least for spent, rounds_at_least in zip(rounds, least, strict=True))


def test_tasks_take_turns_whatever_they_gain() -> None:
    tasks = [TaskProgress(1.0, (None,)), TaskProgress(9.0, (5.0,)), TaskProgress(1.0, exhausted=True)]
    chosen = []
    for _ in range(6):
        index = RoundRobinScheduler().next_task(tasks)
        assert index is not None
        chosen.append(index)
        tasks[index] = replace(tasks[index], best_s=(*tasks[index].best_s, 1.0))
    assert chosen == [0, 1] * 3


def course(best_s: Callable[[int], float], tried: int, weight: float = 1.0, round_size: int = 8) -> TaskProgress:
    """Return the progress of a task after whole rounds, given the best seconds per call after so many candidates."""
    trials = tuple(range(round_size, tried + 1, round_size))
    return TaskProgress(weight, tuple(map(best_s, trials)), trials, untuned_s=best_s(1))


def guessed(tried: int) -> float:
    """Return the share that the next doubling is expected to save where a first round of 8 was never improved on."""
    return IMPROVEMENTS * GUESS / math.log2(tried / 8) + DOUBT


def by_doubling(tried: int) -> float:
    """Return the seconds of a course in which every doubling saves a tenth of the time, in its last round."""
    return 10.0 * 0.9 ** int(math.log2(tried / 8)) if tried >= 8 else 99.0


@pytest.mark.parametrize("doublings", [1, 2, 3])
def test_what_is_expected_comes_where_every_doubling_saves_as_much(doublings: int) -> None:
    """The last three improvements are in the rounds that ended with 512, 256 and 128 candidates."""
    task, further = course(by_doubling, 512), 512.0 * (2**doublings - 1)
    window = math.log2(512 / 120)
    assert expected_saving_s([task], further) == pytest.approx(
        by_doubling(512) * (3 * 0.1 / window + DOUBT) * doublings
    )
    coming_s = by_doubling(512) - by_doubling(512 * 2**doublings)
    assert coming_s < expected_saving_s([task], further) < 2 * coming_s
    thrice_s = expected_saving_s([replace(task, weight=3.0)], further)
    assert thrice_s == pytest.approx(3 * expected_saving_s([task], further))


def test_tasks_are_expected_to_share_further_candidates_as_those_before() -> None:
    steady = [course(lambda tried: 1.0 / tried, tried, weight) for tried, weight in ((192, 1.0), (64, 5.0))]
    each = expected_saving_s(steady[:1], 96.0), expected_saving_s(steady[1:], 32.0)
    assert expected_saving_s(steady, 128.0) == pytest.approx(sum(each))


@pytest.mark.parametrize("power", [0.25, 0.5, 1.0])
def test_where_doublings_save_less_and_less_more_is_expected_than_comes_and_little_more_than_came(power: float) -> None:
    task = course(lambda tried: 1.0 + tried**-power, 512)
    came_s, coming_s = ((2**-power) ** -step * 512**-power * (1 - 2**-power) for step in (1, 0))
    assert coming_s < expected_saving_s([task], 512.0) <= came_s + DOUBT * 2.0


def test_of_a_flat_course_a_little_is_expected_that_shrinks_as_candidates_are_tried() -> None:
    expected = [expected_saving_s([course(lambda _: 2.0, tried)], 60.0) for tried in (16, 160, 1600)]
    assert expected == pytest.approx([2.0 * guessed(tried) * math.log2(1 + 60 / tried) for tried in (16, 160, 1600)])


def test_all_is_open_of_a_task_without_a_second_round_and_nothing_of_one_that_is_exhausted() -> None:
    flat = course(lambda _: 1.0, 64)
    (guessed_s, untried) = expected_saving_s([flat], 64.0), TaskProgress(2.0, untuned_s=4.0)
    first = TaskProgress(2.0, (3.0,), (8,), untuned_s=9.0)
    assert expected_saving_s([flat, untried], 64.0) == pytest.approx(guessed_s + 8.0)
    assert expected_saving_s([flat, first], 72.0) == pytest.approx(guessed_s + 6.0)
    assert expected_saving_s([flat, replace(first, exhausted=True)], 64.0) == pytest.approx(guessed_s)
    assert expected_saving_s([], 64.0) == 0.0


def test_failures_are_expected_to_go_on_and_all_is_open_behind_the_first_valid_candidates() -> None:
    failing = TaskProgress(1.0, (None, None, None, None), (8, 16, 24, 32), untuned_s=5.0)
    assert expected_saving_s([failing], 32.0) == pytest.approx(5.0 * guessed(32))
    assert expected_saving_s([replace(failing, best_s=(None, None, None, 2.0))], 32.0) == pytest.approx(2.0)
    assert expected_saving_s([replace(failing, best_s=(None, None, 2.0, 2.0))], 32.0) == pytest.approx(2 * guessed(32))


def test_a_doubling_without_an_improvement_is_judged_with_those_before() -> None:
    """Each improvement saves half of the time; the first of three began three doublings ago."""
    task = course(lambda tried: 64.0 / 2 ** sum(tried > start for start in (8, 16, 32)), 64)
    assert expected_saving_s([task], 64.0) == pytest.approx(8.0 * (1.5 / 3 + DOUBT))
    later = replace(task, best_s=(*task.best_s, *[8.0] * 56), trials=tuple(range(8, 513, 8)))
    assert expected_saving_s([later], 512.0) == pytest.approx(8.0 * (1.5 / 6 + DOUBT))
    with_more = course(lambda tried: 64.0 / 2 ** sum(tried > start for start in (8, 32, 40, 48)), 64)
    assert expected_saving_s([with_more], 64.0) == pytest.approx(4.0 * (1.5 / 1 + DOUBT))
    one = course(lambda tried: 64.0 / 2 ** (tried > 32), 64)
    assert expected_saving_s([one], 64.0) == pytest.approx(32.0 * ((0.5 + 2 * GUESS) / 3 + DOUBT))


@pytest.mark.parametrize("share", [0.005, 0.02])
@pytest.mark.parametrize("power", [0.25, 0.5])
def test_a_search_of_random_draws_ends_where_its_next_minute_saves_less_than_the_share_on_average(
    power: float, share: float
) -> None:
    """The draws of a single task are above a least time, and 100 take a minute: a hard case, as it improves rarely."""
    rng, minute, longest = np.random.default_rng(0), 100, 8000
    trials, saved = np.arange(8, longest + 1, 8), []
    for _ in range(60):
        best_s = np.minimum.accumulate(1.0 + rng.random(longest + minute) ** power)
        for rounds in sorted({int(1.04**step) for step in range(1, 177)}):
            ended = trials[:rounds]
            task = TaskProgress(1.0, tuple(best_s[ended - 1].tolist()), tuple(ended.tolist()))
            if expected_saving_s([task], minute) < share * task.seconds_per_run:
                break
        else:
            pytest.fail("a search of random draws ends")
        saved.append(1 - best_s[task.tried + minute - 1] / task.seconds_per_run)
    assert float(np.mean(saved)) < share
