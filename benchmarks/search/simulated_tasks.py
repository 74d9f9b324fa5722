"""The dispatches of networks with known times, modelled or recorded, for simulations of whole searches.

- Modelled: best times are the roofline of a machine divided by an efficiency, which a scenario draws per dispatch. The
  candidates are those of a pool of its family, scaled so that the fastest takes the best time: first the random ones,
  in random order, then those that a search chose, in theirs.
- Recorded: each dispatch with its own candidates, in the order of its search, and what they took.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpus.families import FAMILIES
from benchmarks.search.network_tasks import NetworkTask
from mlir_sched.corpus import MeasuredTask, Origin
from mlir_sched.corpus.files import SUFFIX, read_task
from mlir_sched.errors import UserError
from mlir_sched.search import Demand, TaskProgress

PEAK, CACHE, DRAM = 140e9, 60e9, 12e9
"""The machine: operations per second, and bytes per second from a cache and from memory. One core of a server."""

EFFICIENCY = {
    "products": 0.9,
    "vector x matrix": 0.9,
    "batched products, transposed": 0.75,
    "direct convolutions": 0.85,
    "depthwise convolutions": 0.35,
    "softmax": 0.3,
}
"""Middle share of the roofline that the best candidates reach, by family."""

SPREAD = 0.15
"""Standard deviation of the logarithm of the efficiencies of similar dispatches."""

LIMITED = (0.3, 0.8)
"""Share of its family's efficiency that a limited dispatch reaches at best, drawn uniformly."""


@dataclass(frozen=True)
class Pool:
    """The times of a pool's candidates over that of its fastest; infinite where they failed.

    Attributes:
        drawn: Those that were drawn at random.
        chosen: Those that a search chose behind them, in their order.
    """

    drawn: NDArray[np.float64]
    chosen: NDArray[np.float64]

    @staticmethod
    def of(task: MeasuredTask) -> Pool:
        """Return the pool of a measured task; whether its candidates are legal today does not matter for times."""
        seconds = np.array([each.seconds for each in task.measured])
        random = np.array([each.origin is Origin.RANDOM for each in task.measured])
        return Pool(seconds[random] / seconds.min(), seconds[~random] / seconds.min())


LEAST_COST = 1e-6
"""Least cost of a candidate: of a recorded one, nobody may have counted the seconds."""

Pools: TypeAlias = Mapping[str, Sequence[Pool]]
"""Pools by family."""


@dataclass(frozen=True)
class Scenario:
    """How alike dispatches are, and what their candidates are like.

    Attributes:
        limited: Share of the dispatches that reach only a part of what similar ones reach.
        untuned: Most times as long as the best candidate that untuned code takes, drawn log-uniformly from 1.
        alike: Whether similar dispatches have similar efficiencies; else all are drawn log-uniformly from 0.1 to 1.
        family: The family whose candidates all dispatches have; empty where each has those of its own.
    """

    limited: float = 0.2
    untuned: float = 8.0
    alike: bool = True
    family: str = ""


SCENARIOS: Mapping[str, Scenario] = {
    "alike": Scenario(),
    "half limited": Scenario(limited=0.5),
    "slow untuned code": Scenario(untuned=40.0),
    "few good candidates": Scenario(family="depthwise convolutions"),
    "not alike": Scenario(limited=0.0, alike=False),
}


@dataclass(frozen=True)
class SimulatedTask:
    """A dispatch with known times.

    Attributes:
        demand: What a call computes and moves.
        weight: Calls per run of the network.
        untuned_s: Seconds per call without a script.
        best_s: Best seconds per call after each candidate, [candidates]; infinite before the first valid one.
        spent: What the candidates up to each one cost, [candidates]: seconds, or 1 for each.
    """

    demand: Demand
    weight: int
    untuned_s: float
    best_s: NDArray[np.float64]
    spent: NDArray[np.float64]

    def after(self, trials: int) -> float | None:
        """Return the best seconds per call after a number of trials; None while no candidate is valid."""
        best = float(self.best_s[trials - 1]) if trials else math.inf
        return min(best, self.untuned_s) if best < math.inf else None

    def seconds_per_run(self, trials: int) -> float:
        """Return the seconds per run of the network after a number of trials."""
        return self.weight * (self.after(trials) or self.untuned_s)

    @property
    def trials(self) -> int:
        """How many candidates there are."""
        return len(self.best_s)

    def best_gain(self, trials: int) -> float:
        """Return the most seconds per run that further candidates save for what they cost, over any number of them.

        Args:
            trials: Candidates before them, fewer than there are.
        """
        before = float(self.spent[trials - 1]) if trials else 0.0
        saved = self.seconds_per_run(trials) - self.weight * np.minimum(self.best_s[trials:], self.untuned_s)
        return float((saved / np.maximum(self.spent[trials:] - before, LEAST_COST)).max())


@dataclass(frozen=True)
class Oracle:
    """A scheduler that knows every course: each round goes to the task that gains most for what candidates cost.

    Where the rounds of a task are as long as its best gain needs, no order of rounds has a smaller sum of times.
    """

    tasks: Sequence[SimulatedTask]

    def next_task(self, tasks: Sequence[TaskProgress]) -> int | None:
        """Return the index of the task that gets the next round; None if all are exhausted."""
        left = [number for number, task in enumerate(tasks) if not task.exhausted]
        return max(left, key=lambda number: self.tasks[number].best_gain(_tried(tasks[number])), default=None)


def _tried(task: TaskProgress) -> int:
    return task.trials[-1] if task.trials else 0


def pools_in(folder: Path) -> Pools:
    """Return the pools of all machines in a folder, by family.

    Raises:
        UserError: A family has none, or a file cannot be read.
    """
    pools = {
        family: [
            Pool.of(read_task(path))
            for name in FAMILIES[family]
            for path in sorted(folder.glob(f"*/pools/{name}{SUFFIX}"))
        ]
        for family in EFFICIENCY
    }
    if missing := [family for family, found in pools.items() if not found]:
        raise UserError(f"{folder} has no pools of {', '.join(missing)}: python -m benchmarks corpus collect pools")
    return pools


def simulated(tasks: Sequence[NetworkTask], scenario: Scenario, pools: Pools, seed: int) -> list[SimulatedTask]:
    """Return the dispatches of a network with times that are drawn from a seed."""
    rng = np.random.default_rng(seed)
    return [_simulated(task, scenario, pools[scenario.family or task.family], rng) for task in tasks]


def _simulated(task: NetworkTask, scenario: Scenario, pools: Sequence[Pool], rng: np.random.Generator) -> SimulatedTask:
    demand = task.demand
    moving_s = (demand.moved_bytes - task.weight_bytes) / CACHE + task.weight_bytes / DRAM
    best_s = max(demand.operations / PEAK, moving_s) / _efficiency(task, scenario, rng)
    pool = pools[int(rng.integers(len(pools)))]
    slowdowns = np.concatenate([rng.permutation(pool.drawn), pool.chosen])
    untuned_s = best_s * math.exp(rng.uniform(0.0, math.log(scenario.untuned)))
    course = best_s * np.minimum.accumulate(slowdowns)
    return SimulatedTask(demand, task.weight, untuned_s, course, np.arange(1.0, len(course) + 1))


def _efficiency(task: NetworkTask, scenario: Scenario, rng: np.random.Generator) -> float:
    """Return the share of the roofline that a dispatch's best candidate reaches."""
    if not scenario.alike:
        return math.exp(rng.uniform(math.log(0.1), 0.0))
    limit = rng.uniform(*LIMITED) if rng.random() < scenario.limited else 1.0
    return min(1.0, EFFICIENCY[task.family] * math.exp(rng.normal(0.0, SPREAD)) * limit)


def recordings(folder: Path, network: str) -> list[list[SimulatedTask]]:
    """Return the recordings of a network, one per machine: its dispatches with the candidates of their searches.

    Raises:
        UserError: A file cannot be read.
    """
    courses = sorted(folder.glob("*/courses"))
    found = [[_recorded(read_task(path)) for path in sorted(each.glob(f"{network}-*{SUFFIX}"))] for each in courses]
    return [tasks for tasks in found if tasks]


def _recorded(task: MeasuredTask) -> SimulatedTask:
    best_s = np.minimum.accumulate([each.seconds for each in task.measured])
    spent = np.cumsum([each.work_s or 0.0 for each in task.measured])
    return SimulatedTask(Demand.of(task.dispatch), task.weight, task.untuned_s, best_s, spent)
