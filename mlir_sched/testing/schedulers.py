"""The tests that every task scheduler must pass; subclass them for one of your own (pytest collects the class).

::

    class TestInTurns(SchedulerTests):
        def make(self):
            return InTurns()
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from itertools import product

from mlir_sched.plugins import key_of
from mlir_sched.search.task_scheduler import TaskProgress, TaskScheduler

TASKS = (
    TaskProgress(1.0),
    TaskProgress(3.0, untuned_s=1e-3),
    TaskProgress(2.0, (None, None), (8, 16)),
    TaskProgress(1.0, (2e-3, 1e-3), (8, 16), untuned_s=3e-3),
    TaskProgress(5.0, (1e-3,), (8,), exhausted=True),
)
"""Tasks in every state: not begun, begun without a valid candidate, with some, and exhausted."""


class SchedulerTests(ABC):
    """The contract of ``TaskScheduler`` as tests."""

    @abstractmethod
    def make(self) -> TaskScheduler:
        """Return a new scheduler."""

    def test_nothing_is_chosen_when_nothing_is_left(self) -> None:
        """Without tasks, and where all are exhausted, the scheduler returns None."""
        assert self.make().next_task([]) is None
        assert self.make().next_task([replace(task, exhausted=True) for task in TASKS]) is None

    def test_a_task_that_is_not_exhausted_is_chosen_while_there_is_one(self) -> None:
        """Whatever the states of the tasks are, the scheduler returns the number of a task with something left."""
        for tasks in product(TASKS, repeat=3):
            index = self.make().next_task(tasks)
            if all(task.exhausted for task in tasks):
                assert index is None
            else:
                assert index is not None
                assert not tasks[index].exhausted

    def test_the_same_progress_gives_the_same_choice(self) -> None:
        """A scheduler keeps nothing between calls, so that a resumed run goes on as an uninterrupted one."""
        used = self.make()
        for tasks in product(TASKS, repeat=3):
            assert used.next_task(tasks) == self.make().next_task(tasks)

    def test_a_scheduler_has_a_key(self) -> None:
        """Two schedulers of a kind have the same key in stores."""
        assert key_of(self.make()) == key_of(self.make())

    def test_every_task_gets_a_round_in_time(self) -> None:
        """No task starves: each of several tasks that gain equally has a round among the first hundred."""
        tasks = [TaskProgress(weight, untuned_s=1e-3) for weight in (1.0, 2.0, 3.0)]
        for _ in range(100):
            index = self.make().next_task(tasks)
            assert index is not None
            rounds = tasks[index].rounds + 1
            best_s = tuple(1e-3 / (1 + number) for number in range(1, rounds + 1))
            tasks[index] = replace(tasks[index], best_s=best_s, trials=tuple(range(8, 8 * rounds + 1, 8)))
        assert all(task.rounds for task in tasks)
