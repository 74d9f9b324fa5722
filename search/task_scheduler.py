"""The choice of the task that gets the next round of measurements.

The choice is a pure function of the tasks' progress, without random numbers or state: the same progress gives the same
choice in any process, and a resumed run continues as the uninterrupted run would have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, runtime_checkable

from mlir_sched.payload import Dispatch, family_of

DOUBT = 0.01
"""Share of the time that a doubling of the candidates may save beside what was seen of late: repeated times of one code
differ by as much."""
IMPROVEMENTS, GUESS = 3, 0.05
"""Least number of improvements from which it is taken what a doubling of the candidates saves: the best candidate of a
task is as often in the first half as in the second, so that a doubling says little by itself. The second number is the
share of the time that each one is taken to have saved, at the beginning, that is missing."""


@dataclass(frozen=True)
class TaskProgress:
    """The progress of one task.

    Attributes:
        weight: How often the model runs the task, > 0.
        best_s: Best seconds per call after each round spent on the task, None while no candidate was valid.
        trials: Candidates tried up to the end of each round, rising; if empty, rounds are counted instead.
        exhausted: Whether the task's strategy has nothing left to suggest.
        demand: What a call of the task computes and moves; None when unknown.
        untuned_s: Seconds per call without a candidate; None when unknown.
    """

    weight: float
    best_s: tuple[float | None, ...] = ()
    trials: tuple[int, ...] = ()
    exhausted: bool = False
    demand: Demand | None = None
    untuned_s: float | None = None

    @property
    def rounds(self) -> int:
        """Number of rounds spent on the task."""
        return len(self.best_s)

    def trials_after(self, rounds: int) -> int:
        """Return the number of candidates tried in the task's first ``rounds`` rounds, for ``rounds`` >= 1."""
        return self.trials[rounds - 1] if self.trials else rounds

    @property
    def tried(self) -> int:
        """Number of candidates tried; of rounds where candidates are not counted."""
        return self.trials_after(self.rounds) if self.rounds else 0

    @property
    def latest_s(self) -> float | None:
        """Best seconds per call so far, or None."""
        return self.best_s[-1] if self.best_s else None

    @property
    def seconds_per_run(self) -> float:
        """Seconds that its calls take per run with the best candidate, or else without any; 0 where that is unknown."""
        return self.weight * (self.latest_s or self.untuned_s or 0.0)


@dataclass(frozen=True)
class GradientOptions:
    """Parameters of the gradient.

    Attributes:
        alpha: Weight of the past gain against the hoped-for gain, 0..1. Source: 0.2 in Ansor and MetaSchedule.
        window: Rounds over which the past gain is measured, >= 1. Source: 3 in Ansor and MetaSchedule.
        patience: Rounds that a task without a valid candidate gets at first, ahead of tasks with valid candidates.
            Source: 5 empty iterations end a task in MetaSchedule.
        floor: Share of an equal division of the rounds that a task without a valid candidate gets afterwards, 0..1.
            Ours: such a task must not starve.
        trust: Share of a task's time at the best rates of similar tasks that no candidate is expected to save, 0..1.
            Below 1, so that the fastest of similar tasks does not starve: at equal times its share of the candidates
            falls at most to 1 - ``trust`` of what it is without similarity. Ours: in the benchmark ``task_scheduling``
            0.5 gains less than 0.7, and 0.85 loses more where tasks are not alike.
    """

    alpha: float = 0.2
    window: int = 3
    patience: int = 5
    floor: float = 0.5
    trust: float = 0.7


@runtime_checkable
class TaskScheduler(Protocol):
    """What chooses the task that gets the next round; it must keep nothing between calls.

    A scheduler that is passed as an object has a ``key``, a text for the stores that hold runs.
    """

    def next_task(self, tasks: Sequence[TaskProgress]) -> int | None:
        """Return the index of the task that gets the next round; None if all are exhausted."""
        ...


class GradientScheduler:
    """A scheduler that gives each round to the task where the weighted sum of times is expected to fall the most.

    1. A task without a valid candidate gets further rounds, up to ``patience``. Tasks whose untuned code was not timed
       get their first round before all others.
    2. A task still without a valid candidate gets the round if it has had less than ``floor`` of an equal share.
    3. Otherwise the round goes to the task with the largest gain of ``f = sum of weight * best`` per candidate::

        past = (best[t - w] - best[t]) / (n[t] - n[t - w])
        hope = (best[t] - trust * similar) / n[t]
        gain = weight * (alpha * past + (1 - alpha) * hope)

    Here ``n[t]`` is the number of candidates tried in ``t`` rounds, and ``w`` the window. Candidates are counted
    because less is known of tasks that share the candidates of a round at first than after a whole round each.
    ``similar`` is what a call would take at the best rates of similar tasks, 0 where there are none
    (``task_scheduler.py``): a task far below these rates is hoped to gain most of its time, and one that has reached
    them only ``1 - trust`` of its time. Of a task that had no round yet, ``best`` is the time of its untuned code, and
    ``n`` is 1: light tasks wait while heavy ones gain more per candidate.

    Source: MetaSchedule (TVM ``gradient_based.cc``), which counts rounds and gives -1e9 to a task without a valid
    candidate, which then starves. Ansor (Zheng et al., OSDI 2020, section 6.2 and appendix A) compares similar tasks,
    too: the next round is expected to bring a task to half of their best rate (beta = 2 in TVM's ``task_scheduler.py``)
    or to gain ``best[t] / t``, whichever is more. There similarity can only raise a task's gain, and for as long as
    the task stays behind, however many rounds it had. Here similarity lowers the gains of tasks that are not behind.
    """

    def __init__(self, options: GradientOptions | None = None) -> None:
        self._options = options or GradientOptions()

    @property
    def key(self) -> str:
        """What tells schedulers apart in the keys of stores."""
        return repr(self._options)

    def next_task(self, tasks: Sequence[TaskProgress]) -> int | None:
        """Return the index of the task that gets the next round, the first of equals; None if all are exhausted."""
        candidates = _open(tasks)
        unstarted = [index for index in candidates if not tasks[index].rounds and tasks[index].untuned_s is None]
        invalid = [index for index in candidates if tasks[index].rounds and tasks[index].latest_s is None]
        if unstarted:
            return unstarted[0]
        urgent = [index for index in invalid if self._is_urgent(tasks[index], tasks)]
        if urgent:
            return min(urgent, key=lambda index: tasks[index].rounds)
        known = [index for index in candidates if index not in invalid]
        if known:
            similar_s = seconds_at_best_rates([(task.demand, task.latest_s) for task in tasks])
            return max(known, key=lambda index: self.gain(tasks[index], similar_s[index]))
        return min(invalid, key=lambda index: tasks[index].rounds, default=None)

    def gain(self, task: TaskProgress, similar_s: float = 0.0) -> float:
        """Return the seconds by which one more candidate is expected to lower the weighted sum of times, >= 0.

        Args:
            task: A task with a valid candidate, or without any candidate and with the time of its untuned code.
            similar_s: Seconds per call at the best rates of similar tasks; 0 where there are none.
        """
        options = self._options
        best = task.latest_s if task.rounds else task.untuned_s
        assert best is not None
        window = min(options.window, max(0, task.rounds - 1))
        spent = task.trials_after(task.rounds) - task.trials_after(task.rounds - window) if window else 0
        earlier = task.best_s[-1 - window] if spent else None
        past = (earlier - best) / spent if earlier is not None else 0.0
        tried = task.trials_after(task.rounds) if task.rounds else 1
        hoped = (best - options.trust * min(best, similar_s)) / tried
        return task.weight * (options.alpha * past + (1 - options.alpha) * hoped)

    def _is_urgent(self, task: TaskProgress, tasks: Sequence[TaskProgress]) -> bool:
        fair_share = sum(other.rounds for other in tasks) / len(tasks)
        return task.rounds < max(self._options.patience, math.floor(self._options.floor * fair_share))


class RoundRobinScheduler:
    """A scheduler that gives every task a round in turn, whatever its rounds gain: the null that others have to beat.

    Source: MetaSchedule (TVM ``round_robin.cc``).
    """

    key = "round-robin"

    def next_task(self, tasks: Sequence[TaskProgress]) -> int | None:
        """Return the index of the task with the fewest rounds, the first of equals; None if all are exhausted."""
        return min(_open(tasks), key=lambda index: tasks[index].rounds, default=None)


def _open(tasks: Sequence[TaskProgress]) -> list[int]:
    return [index for index, task in enumerate(tasks) if not task.exhausted]


def expected_saving_s(tasks: Sequence[TaskProgress], further: float) -> float:
    """Return the seconds by which so many further candidates are expected to lower the weighted sum of times, >= 0.

    In Ansor's gradient (:class:`GradientScheduler`) what a candidate is hoped to save falls as ``1 / n`` where ``n``
    were tried: every doubling of the candidates saves as much. Ansor hopes that this is all of the time, which ranks
    tasks, but is many times what comes of it. Here it is the share that a doubling saved of late, and the further
    candidates are divided among the tasks as those before were::

        doubling = sum of weight * best * (shares that improvements of the last w doublings saved / w + DOUBT)
        expected = doubling * log2(1 + further / sum of n)

    The window ``w`` is 1, or larger if it needs to be for :data:`IMPROVEMENTS` of all tasks. Those that are missing are
    taken to have come behind the first round, of :data:`GUESS` each. What the first valid candidates save of the time
    of the untuned code is no improvement: a task without a round behind them may save all of its time in a doubling.
    One that is exhausted saves nothing. Where doublings save less and less, this is more than what comes.
    """
    left = [tasks[index] for index in _open(tasks)]
    known = [task for task in left if not _is_unknown(task)]
    first = max((_doublings_ago(task, 1) for task in known), default=0.0)
    found = [each for task in known for each in _improvements(task)]
    all_s, known_s = (sum(task.seconds_per_run for task in tasks) for tasks in (left, known))
    improvements = sorted([*found, *[(first, GUESS * known_s)] * (IMPROVEMENTS - len(found))])
    window = max(1.0, improvements[IMPROVEMENTS - 1][0])
    doubling_s = sum(saved_s for ago, saved_s in improvements if ago <= window) / window + DOUBT * known_s
    tried = sum(task.tried for task in left)
    return (doubling_s + all_s - known_s) * math.log2(1 + further / max(1, tried))


def _is_unknown(task: TaskProgress) -> bool:
    """Say whether nothing is known of what further candidates save: no round is behind the first valid ones."""
    return task.rounds < 2 or task.best_s.count(None) == task.rounds - 1


def _doublings_ago(task: TaskProgress, rounds: int) -> float:
    """Return how often a task's candidates have doubled since the end of its first ``rounds`` rounds, >= 1."""
    return math.log2(task.tried / task.trials_after(rounds))


def _improvements(task: TaskProgress) -> Iterator[tuple[float, float]]:
    """Yield how many doublings ago the round of each improvement began, and what its share is of the time now."""
    for rounds, (before_s, after_s) in enumerate(pairwise(task.best_s), start=1):
        if before_s is not None and after_s is not None and after_s < before_s:
            yield _doublings_ago(task, rounds), task.seconds_per_run * (1 - after_s / before_s)


@dataclass(frozen=True)
class Demand:
    """What one call of a task computes and moves.

    A family of similar tasks, such as all matrix multiplications in f32, reaches many operations per second with tasks
    that the arithmetic binds, and many bytes per second with tasks that the memory binds. Each of both rates is a
    limit, as in the roofline model (Williams et al., CACM 2009), whose ceilings are those that the family has shown.

    Attributes:
        family: Tasks with equal families are similar: they are expected to reach the same rates.
        operations: Scalar operations, >= 0; 0 for a task that only moves data.
        moved_bytes: Bytes that are read and written, >= 0.
    """

    family: str
    operations: float
    moved_bytes: float

    @staticmethod
    def of(dispatch: Dispatch) -> Demand:
        """Return what a call of a dispatch computes, and the bytes of what it reads and writes."""
        read = sum(each.tensor.bytes for op in dispatch.ops for each in op.inputs if each.producer is None)
        written = sum(dispatch.ops[index].outputs[0].tensor.bytes for index in dispatch.results)
        return Demand(family_of(dispatch), dispatch.scalar_ops, read + written)

    def seconds(self, operations_per_s: float, bytes_per_s: float) -> float:
        """Return the seconds of a call at two rates, each > 0 or 0 where the family has none: the larger time."""
        compute_s = self.operations / operations_per_s if operations_per_s else 0.0
        move_s = self.moved_bytes / bytes_per_s if bytes_per_s else 0.0
        return max(compute_s, move_s)


def seconds_at_best_rates(tasks: Sequence[tuple[Demand | None, float | None]]) -> list[float]:
    """Return the seconds per call that each task would take at the best rates of its family; 0 where it is alone.

    Args:
        tasks: Per task its demand, or None, and its best seconds per call so far, > 0, or None.
    """
    families: dict[str, list[tuple[Demand, float]]] = {}
    for demand, seconds in tasks:
        if demand is not None and seconds is not None:
            families.setdefault(demand.family, []).append((demand, seconds))
    rates = {family: best_rates(members) for family, members in families.items() if len(members) > 1}
    return [
        demand.seconds(*rates[demand.family]) if demand is not None and demand.family in rates else 0.0
        for demand, _ in tasks
    ]


def best_rates(members: Sequence[tuple[Demand, float]]) -> tuple[float, float]:
    """Return the highest operations per second and the highest bytes per second of tasks, each with its seconds."""
    return (
        max(demand.operations / seconds for demand, seconds in members),
        max(demand.moved_bytes / seconds for demand, seconds in members),
    )
