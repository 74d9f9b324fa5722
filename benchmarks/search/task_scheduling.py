"""What similarity is worth in the task scheduler: a simulation of whole networks, exact and repeatable.

The dispatches of a network (``network_tasks.py``) are searched by the scheduler and the rounds of a real run, with
modelled times. The candidates of a dispatch are those of a measured design space (``benchmarks/data``) in random order,
scaled so that the fastest takes the dispatch's best time. Best times are the roofline of a machine divided by an
efficiency, which a scenario draws per dispatch. No time is measured, and traces are not exchanged between tasks.

    python -m benchmarks task_scheduling --seeds 40
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from statistics import geometric_mean

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures.publishing import Publishing, options_of, parsed
from benchmarks.figures.result_table import ResultColumn, ResultTable, Unit
from benchmarks.folders import DATA
from benchmarks.search.measured_space import read_measured
from benchmarks.search.network_tasks import NETWORKS, NetworkTask
from mlir_sched import TuneOptions
from mlir_sched.search import GradientOptions, GradientScheduler, TaskProgress
from mlir_sched.tuning.budget import Allowance, SearchProgress

TRIALS_PER_TASK = (1, 2, 3, 4, 6, 8, 16)
"""Candidates per dispatch after which the program's time is read. A run of 6 minutes on ResNet-50 has 6 to 13."""

PEAK, CACHE, DRAM = 140e9, 60e9, 12e9
"""The machine: operations per second, and bytes per second from a cache and from memory. One core of a server."""

EFFICIENCY = {
    "matmul_256": 0.9,
    "vecmat_512": 0.9,
    "transposed_batch_matmul": 0.75,
    "grouped_conv2d": 0.85,
    "conv1d": 0.35,
    "softmax_64x128": 0.3,
}
"""Middle share of the roofline that the best candidates reach, by table."""

SPREAD = 0.15
"""Standard deviation of the logarithm of the efficiencies of similar dispatches."""

LIMITED = (0.3, 0.8)
"""Share of its family's efficiency that a limited dispatch reaches at best, drawn uniformly."""


@dataclass(frozen=True)
class Scenario:
    """How alike dispatches are, and what their candidates are like.

    Attributes:
        limited: Share of the dispatches that reach only a part of what similar ones reach.
        untuned: Most times as long as the best candidate that untuned code takes, drawn log-uniformly from 1.
        alike: Whether similar dispatches have similar efficiencies; else all are drawn log-uniformly from 0.1 to 1.
        table: The table whose candidates all dispatches have; empty for a table by kind.
    """

    limited: float = 0.2
    untuned: float = 8.0
    alike: bool = True
    table: str = ""


SCENARIOS: Mapping[str, Scenario] = {
    "alike": Scenario(),
    "half limited": Scenario(limited=0.5),
    "slow untuned code": Scenario(untuned=40.0),
    "few good candidates": Scenario(table="transposed_batch_matmul"),
    "not alike": Scenario(limited=0.0, alike=False),
}
RULES: Mapping[str, GradientOptions] = {"without": GradientOptions(trust=0.0), "with": GradientOptions()}


@dataclass(frozen=True)
class SimulatedTask:
    """A dispatch with known times.

    Attributes:
        network_task: The dispatch.
        untuned_s: Seconds per call without a script.
        best_s: Best seconds per call after each candidate, [candidates]; infinite before the first valid one.
    """

    network_task: NetworkTask
    untuned_s: float
    best_s: NDArray[np.float64]

    def after(self, trials: int) -> float | None:
        """Return the best seconds per call after a number of trials; None while no candidate is valid."""
        best = float(self.best_s[trials - 1]) if trials else math.inf
        return min(best, self.untuned_s) if best < math.inf else None

    def seconds_per_run(self, trials: float) -> float:
        """Return the seconds per run of the network after a number of trials, which may be infinite."""
        known = min(trials, len(self.best_s))
        return self.network_task.weight * (self.after(int(known)) or self.untuned_s)


def slowdowns(name: str) -> NDArray[np.float64]:
    """Return the seconds of all candidates of a measured space, relative to the fastest; infinite where they failed."""
    space = read_measured(DATA / f"{name}.jsonl.gz")
    seconds = [math.inf if point.seconds is None else point.seconds for point in space.points]
    return np.array(seconds) / space.best_s


def simulated(
    tasks: Sequence[NetworkTask], scenario: Scenario, tables: Mapping[str, NDArray[np.float64]], seed: int
) -> list[SimulatedTask]:
    """Return the dispatches of a network with times that are drawn from a seed."""
    rng = np.random.default_rng(seed)
    return [_simulated(task, scenario, tables[scenario.table or task.table], rng) for task in tasks]


def _simulated(
    task: NetworkTask, scenario: Scenario, candidates: NDArray[np.float64], rng: np.random.Generator
) -> SimulatedTask:
    demand = task.demand
    moving_s = (demand.moved_bytes - task.weight_bytes) / CACHE + task.weight_bytes / DRAM
    best_s = max(demand.operations / PEAK, moving_s) / _efficiency(task, scenario, rng)
    course = best_s * np.minimum.accumulate(rng.permutation(candidates))
    return SimulatedTask(task, best_s * math.exp(rng.uniform(0.0, math.log(scenario.untuned))), course)


def _efficiency(task: NetworkTask, scenario: Scenario, rng: np.random.Generator) -> float:
    """Return the share of the roofline that a dispatch's best candidate reaches."""
    if not scenario.alike:
        return math.exp(rng.uniform(math.log(0.1), 0.0))
    limit = rng.uniform(*LIMITED) if rng.random() < scenario.limited else 1.0
    return min(1.0, EFFICIENCY[task.table] * math.exp(rng.normal(0.0, SPREAD)) * limit)


def search(tasks: Sequence[SimulatedTask], options: GradientOptions, trials: int, round_size: int) -> list[list[int]]:
    """Return how many candidates each task had, at the beginning and after each round, until the trials are spent."""
    scheduler, allowance = GradientScheduler(options), Allowance(round_size, trials)
    rounds: list[list[int]] = [[] for _ in tasks]
    courses = [[0] * len(tasks)]
    while True:
        spent = courses[-1]
        progress = [_progress(*each) for each in zip(tasks, rounds, strict=True)]
        index = scheduler.next_task(progress)
        if index is None:
            return courses
        count = allowance.next_round(SearchProgress(sum(spent), 0.0, len(tasks), bool(rounds[index]), begun=False))
        if not count:
            return courses
        reached = min(spent[index] + count, len(tasks[index].best_s))
        rounds[index].append(reached)
        courses.append([*spent[:index], reached, *spent[index + 1 :]])


def _progress(task: SimulatedTask, rounds: Sequence[int]) -> TaskProgress:
    best_s = tuple(task.after(trials) for trials in rounds)
    exhausted = bool(rounds) and rounds[-1] == len(task.best_s)
    network_task = task.network_task
    return TaskProgress(network_task.weight, best_s, tuple(rounds), exhausted, network_task.demand, task.untuned_s)


def excess(tasks: Sequence[SimulatedTask], courses: Sequence[Sequence[int]], trials: int) -> float:
    """Return the network's time after a number of trials, relative to the best that there is; at least 1."""
    spent = [course for course in courses if sum(course) <= trials][-1]
    found_s = sum(task.seconds_per_run(count) for task, count in zip(tasks, spent, strict=True))
    return found_s / sum(task.seconds_per_run(math.inf) for task in tasks)


@dataclass(frozen=True)
class Cell:
    """The result of one scenario, network and number of trials.

    Attributes:
        scenario, network: Their names.
        trials: Candidates per dispatch.
        without, with_similarity: Geometric means over the seeds of the time relative to the best there is.
        change: Geometric mean of the time with similarity relative to the time without.
        error: Standard error of the logarithm of this mean.
    """

    scenario: str
    network: str
    trials: int
    without: float
    with_similarity: float
    change: float
    error: float


def compare(scenario: str, network: str, seeds: int, round_size: int = TuneOptions.round_size) -> list[Cell]:
    """Return the results for a network in a scenario, one per number of trials."""
    tables = {name: slowdowns(name) for name in EFFICIENCY}
    logs = np.empty((seeds, len(RULES), len(TRIALS_PER_TASK)))
    for seed in range(seeds):
        tasks = simulated(NETWORKS[network](), SCENARIOS[scenario], tables, seed)
        for rule, options in enumerate(RULES.values()):
            courses = search(tasks, options, TRIALS_PER_TASK[-1] * len(tasks), round_size)
            logs[seed, rule] = [math.log(excess(tasks, courses, per * len(tasks))) for per in TRIALS_PER_TASK]
    means, change = np.exp(logs.mean(0)), logs[:, 1] - logs[:, 0]
    error = change.std(0, ddof=1) / math.sqrt(seeds)
    return [
        Cell(
            scenario,
            network,
            per,
            without=float(means[0, at]),
            with_similarity=float(means[1, at]),
            change=math.exp(change[:, at].mean()),
            error=float(error[at]),
        )
        for at, per in enumerate(TRIALS_PER_TASK)
    ]


def results_table(cells: Sequence[Cell], seeds: int, publishing: Publishing) -> ResultTable:
    """Return a table of results: per scenario and rule, the time over the best there is, means over the networks."""
    trials = list(dict.fromkeys(cell.trials for cell in cells))
    found: dict[tuple[str, int], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.scenario, cell.trials), []).append(cell)
    rows = [
        (f"{scenario}, {rule} similarity", [_mean(found[scenario, per], rule) for per in trials])
        for scenario in dict.fromkeys(cell.scenario for cell in cells)
        for rule in RULES
    ]
    return publishing.table(
        name="task-scheduling",
        question="search",
        title="Whole networks with few trials per dispatch",
        threads=1,
        seeds=range(seeds),
        interleaving="Nothing is timed: every dispatch has the candidates of a measured space in random order",
        spread=f"none; geometric means over {', '.join(dict.fromkeys(cell.network for cell in cells))}",
        rows_are="dispatches and rule \\ trials per dispatch",
        columns={ResultColumn(f"{per}", Unit.NUMBER): itemgetter(at) for at, per in enumerate(trials)},
        rows=rows,
        notes=("The time of the network over the best that there is.",),
    )


def _mean(cells: Sequence[Cell], rule: str) -> float:
    return geometric_mean(cell.without if rule == "without" else cell.with_similarity for cell in cells)


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--seeds", type=int, default=40, help="at least 2")
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--json", type=Path)
    args, publishing = parsed(parser)
    cells: list[Cell] = []
    for scenario in args.scenarios:
        for network in args.networks:
            found = compare(scenario, network, args.seeds)
            for cell in found:
                times = f"{cell.without:7.4f} {cell.with_similarity:7.4f}"
                change = f"{100 * (cell.change - 1):+6.2f} % +- {100 * cell.error:.2f}"
                print(f"{scenario:20} {network:13} {cell.trials:3} {times} {change}", flush=True)
            cells += found
    if args.json:
        args.json.write_text(json.dumps([asdict(cell) for cell in cells], indent=1) + "\n")
    publishing.add(results_table(cells, args.seeds, publishing))
