import pytest

from mlir_sched.search import GradientOptions, GradientScheduler, TaskProgress


class Simulation:
    """Tasks whose best time after each round is known beforehand."""

    def __init__(
        self, curves: list[list[float | None]], weights: list[float], scheduler: GradientScheduler | None = None
    ) -> None:
        self.scheduler = scheduler or GradientScheduler()
        self.curves = curves
        self.weights = weights
        self.rounds = [0] * len(curves)
        self.chosen: list[int] = []

    def run(self, rounds: int) -> list[int]:
        for _ in range(rounds):
            tasks = [
                TaskProgress(weight, tuple((curve + curve[-1:] * rounds)[:spent]))
                for curve, weight, spent in zip(self.curves, self.weights, self.rounds, strict=True)
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
