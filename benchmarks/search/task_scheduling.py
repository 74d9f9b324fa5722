"""What similarity is worth in the task scheduler, and what is left to gain: whole networks, simulated.

The dispatches of a network are searched by the scheduler and the rounds of a real run. No time is measured, and traces
are not exchanged between tasks. Networks are modelled, with candidates of measured pools (``--pools``), or recorded,
with the candidates of their own searches and what these took (``--courses``); files of several machines are several
recordings (``simulated_tasks.py``).

    python -m benchmarks task_scheduling --seeds 40
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from statistics import geometric_mean

import numpy as np

from benchmarks.corpus.sets import COLLECTED
from benchmarks.corpus.sets import NETWORKS as RECORDED
from benchmarks.figures.publishing import Publishing, options_of, parsed
from benchmarks.figures.result_table import Columns, ResultColumn, ResultTable, Unit
from benchmarks.search.network_tasks import NETWORKS
from benchmarks.search.simulated_tasks import SCENARIOS, Oracle, Pools, SimulatedTask, pools_in, recordings, simulated
from mlir_sched import TuneOptions
from mlir_sched.corpus.files import SHIPPED
from mlir_sched.search import GradientOptions, GradientScheduler, TaskProgress, TaskScheduler
from mlir_sched.tuning.budget import Allowance, SearchProgress

TRIALS_PER_TASK = (1, 2, 3, 4, 6, 8, 16)
"""Candidates per dispatch after which a modelled program's time is read. Six minutes of ResNet-50 have 6 to 13."""
SECONDS = (5, 10, 20, 40, 80, 160)
"""Seconds of work on candidates after which a recorded program's time is read."""
RULES: Mapping[str, Callable[[Sequence[SimulatedTask]], TaskScheduler]] = {
    "without similarity": lambda _: GradientScheduler(GradientOptions(trust=0.0)),
    "with similarity": lambda _: GradientScheduler(),
    "knowing every course": Oracle,
}
"""Makes the scheduler of a network, by the rule; the last one is what no scheduler can be better than, up to rounds."""


def search(tasks: Sequence[SimulatedTask], scheduler: TaskScheduler, trials: int, round_size: int) -> list[list[int]]:
    """Return how many candidates each task had, at the beginning and after each round, until the trials are spent."""
    allowance = Allowance(round_size, trials)
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
        reached = min(spent[index] + count, tasks[index].trials)
        rounds[index].append(reached)
        courses.append([*spent[:index], reached, *spent[index + 1 :]])


def _progress(task: SimulatedTask, rounds: Sequence[int]) -> TaskProgress:
    best_s = tuple(task.after(trials) for trials in rounds)
    exhausted = bool(rounds) and rounds[-1] == task.trials
    return TaskProgress(task.weight, best_s, tuple(rounds), exhausted, task.demand, task.untuned_s)


def excess(tasks: Sequence[SimulatedTask], courses: Sequence[Sequence[int]], limit: float) -> float:
    """Return the network's time once the search has spent a limit, relative to the best that there is; at least 1."""

    def spent(course: Sequence[int]) -> float:
        return sum(float(task.spent[count - 1]) for task, count in zip(tasks, course, strict=True) if count)

    reached = [course for course in courses if spent(course) <= limit][-1]
    found_s = sum(task.seconds_per_run(count) for task, count in zip(tasks, reached, strict=True))
    return found_s / sum(task.seconds_per_run(task.trials) for task in tasks)


@dataclass(frozen=True)
class Cell:
    """The result of one scenario and network after some time.

    Attributes:
        scenario, network: Their names.
        spent: Candidates per dispatch of a modelled network, seconds of a recorded one.
        without, with_similarity, oracle: Geometric means over the seeds of the time relative to the best there is, by
            the rules in their order.
        change: Geometric mean of the time with similarity relative to the time without.
        error: Standard error of the logarithm of this mean; 0 for a single search.
    """

    scenario: str
    network: str
    spent: int
    without: float
    with_similarity: float
    oracle: float
    change: float
    error: float


def compare(
    scenario: str, network: str, pools: Pools, seeds: int, round_size: int = TuneOptions.round_size
) -> list[Cell]:
    """Return the results for a modelled network in a scenario, one per number of trials."""
    tasks = NETWORKS[network]()
    runs = [simulated(tasks, SCENARIOS[scenario], pools, seed) for seed in range(seeds)]
    limits = {per: per * len(tasks) for per in TRIALS_PER_TASK}
    return _cells(scenario, network, runs, limits, TRIALS_PER_TASK[-1] * len(tasks), round_size)


def replayed(network: str, found: Sequence[Sequence[SimulatedTask]], round_size: int) -> list[Cell]:
    """Return the results for the recordings of a network, one per number of seconds."""
    trials = max(sum(task.trials for task in tasks) for tasks in found)
    return _cells("recorded", network, found, {seconds: seconds for seconds in SECONDS}, trials, round_size)


def _cells(
    scenario: str,
    network: str,
    runs: Sequence[Sequence[SimulatedTask]],
    limits: Mapping[int, float],
    trials: int,
    round_size: int,
) -> list[Cell]:
    logs = np.empty((len(runs), len(RULES), len(limits)))
    for number, tasks in enumerate(runs):
        for rule, make in enumerate(RULES.values()):
            courses = search(tasks, make(tasks), trials, round_size)
            logs[number, rule] = [math.log(excess(tasks, courses, limit)) for limit in limits.values()]
    means, change = np.exp(logs.mean(0)), logs[:, 1] - logs[:, 0]
    error = change.std(0, ddof=1) / math.sqrt(len(runs)) if len(runs) > 1 else np.zeros(len(limits))
    return [
        Cell(
            scenario,
            network,
            mark,
            without=float(means[0, at]),
            with_similarity=float(means[1, at]),
            oracle=float(means[2, at]),
            change=math.exp(change[:, at].mean()),
            error=float(error[at]),
        )
        for at, mark in enumerate(limits)
    ]


def results_tables(
    modelled: Sequence[Cell], recorded: Sequence[Cell], seeds: int, publishing: Publishing
) -> Iterator[ResultTable]:
    """Yield a table of results per kind of network: per rule, the time over the best there is."""
    best = "The time of the network over the best that there is."
    yield publishing.table(
        name="task-scheduling",
        question="search",
        title="Whole networks with few trials per dispatch",
        threads=1,
        seeds=range(seeds),
        interleaving="Nothing is timed: every dispatch has the candidates of a pool of its family in random order",
        spread=f"none; geometric means over {', '.join(dict.fromkeys(cell.network for cell in modelled))}",
        rows_are="dispatches and rule \\ trials per dispatch",
        columns=_columns(modelled, ""),
        rows=_rows(modelled, [cell.scenario for cell in modelled]),
        notes=(best,),
    )
    if recorded:
        yield publishing.table(
            name="recorded-scheduling",
            question="search",
            title="Recorded networks after seconds of search",
            threads=1,
            seeds=[],
            interleaving="Nothing is timed: every dispatch has the candidates of its own search in their order",
            spread="none; geometric means over the machines",
            rows_are="network and rule \\ seconds of work on candidates",
            columns=_columns(recorded, " s"),
            rows=_rows(recorded, [cell.network for cell in recorded]),
            notes=(best,),
        )


def _columns(cells: Sequence[Cell], unit: str) -> Columns[list[float]]:
    marks = dict.fromkeys(cell.spent for cell in cells)
    return {ResultColumn(f"{mark}{unit}", Unit.NUMBER): itemgetter(at) for at, mark in enumerate(marks)}


def _rows(cells: Sequence[Cell], names: Sequence[str]) -> Iterator[tuple[str, list[float]]]:
    """Yield per name and rule the geometric means over the cells of that name, one per column."""
    found: dict[str, dict[int, list[Cell]]] = {}
    for name, cell in zip(names, cells, strict=True):
        found.setdefault(name, {}).setdefault(cell.spent, []).append(cell)
    for name, columns in found.items():
        for rule in RULES:
            yield f"{name}, {rule}", [_mean(each, rule) for each in columns.values()]


def _mean(cells: Sequence[Cell], rule: str) -> float:
    at = list(RULES).index(rule)
    return geometric_mean((cell.without, cell.with_similarity, cell.oracle)[at] for cell in cells)


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--seeds", type=int, default=40, help="at least 2")
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS), help="modelled ones")
    parser.add_argument("--pools", type=Path, default=SHIPPED, help="folder of measured candidates of families")
    parser.add_argument("--courses", type=Path, default=COLLECTED, help="folder of recorded networks")
    parser.add_argument("--json", type=Path)
    args, publishing = parsed(parser)
    pools = pools_in(args.pools)
    modelled = [
        cell
        for scenario in args.scenarios
        for network in args.networks
        for cell in _shown(compare(scenario, network, pools, args.seeds))
    ]
    recorded = [
        cell
        for network in RECORDED
        if (found := recordings(args.courses, network))
        for cell in _shown(replayed(network, found, TuneOptions.round_size))
    ]
    if args.json:
        args.json.write_text(json.dumps([asdict(cell) for cell in (*modelled, *recorded)], indent=1) + "\n")
    for table in results_tables(modelled, recorded, args.seeds, publishing):
        publishing.add(table)


def _shown(cells: Sequence[Cell]) -> Sequence[Cell]:
    for cell in cells:
        times = f"{cell.without:7.4f} {cell.with_similarity:7.4f} {cell.oracle:7.4f}"
        change = f"{100 * (cell.change - 1):+6.2f} % +- {100 * cell.error:.2f}"
        print(f"{cell.scenario:20} {cell.network:19} {cell.spent:3} {times} {change}", flush=True)
    return cells
