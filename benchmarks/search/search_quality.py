"""The trials that each search strategy needs: evolution with and without the cost model against random search.

Runs on parts of design spaces that were measured whole (``python -m benchmarks corpus collect complete``), so that
neither compiler nor device is needed and repeated runs print the same results. Without a file, small synthetic spaces
are searched.

    python -m benchmarks search_quality benchmarks/data/corpus/zen4/complete --seeds 10 --json out.json
"""

import json
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from operator import itemgetter
from pathlib import Path

import numpy as np

from benchmarks.figures.publishing import Publishing, options_of, parsed
from benchmarks.figures.result_table import Columns, Figure, ResultColumn, ResultTable, Unit, figure
from benchmarks.search.enumeration import enumerate_traces
from benchmarks.search.measured_space import MeasuredSpace
from benchmarks.search.random_orders import draws_to_reach, expected_best
from mlir_sched import TuneOptions
from mlir_sched.corpus.files import files_in, read_task
from mlir_sched.errors import UserError
from mlir_sched.models import CostModel, RandomModel, SharedCostModel, XGBoostModel
from mlir_sched.sampling import Value
from mlir_sched.search import EvolutionarySearch, Observation, SearchStrategy
from mlir_sched.search.synthetic_space import SyntheticMatmulSpace
from mlir_sched.trace import Decision

INTERLEAVING = "The strategies search in tables that were measured point by point"
COURSE = (8, 16, 24, 32, 48, 64, 96, 128, 192)
"""Trials after which the best is published."""
ROUNDS = (16, 32, 64)
"""Trials after which rounds of several sizes are compared."""
MODEL = "evolution+model"
"""The default strategy."""
RANDOM = "random"
"""Random search, of which all orders of the candidates count."""
SYNTHETIC_SHAPES = ((32, 48, 16), (24, 64, 16))
SYNTHETIC_FIXED: Mapping[str, Value] = {"order": ("m", "n", "k"), "unroll": 2}


@dataclass(frozen=True)
class SearchRun:
    """The course of one search.

    Attributes:
        task, strategy, seed: The space, strategy and seed of the search.
        best_s: Best seconds per call after each trial; infinite while all candidates have failed.
        optimum_s: Seconds per call of the fastest candidate of the table.
    """

    task: str
    strategy: str
    seed: int
    best_s: tuple[float, ...]
    optimum_s: float

    def trials_to_reach(self, within: float) -> float:
        """Return the trials until the best is at most ``1 + within`` times the optimum; infinite if it never is."""
        limit = (1.0 + within) * self.optimum_s
        return next((float(trial) for trial, best in enumerate(self.best_s, 1) if best <= limit), math.inf)

    def slowdown_at(self, trial: int) -> float:
        """Return best / optimum after a number of trials, or after the last one."""
        return self.best_s[min(trial, len(self.best_s)) - 1] / self.optimum_s


@dataclass(frozen=True)
class Searched:
    """A space that was searched.

    Attributes:
        name: Its name.
        seconds: Seconds per call of its candidates; infinite where they failed.
        runs: The searches.
    """

    name: str
    seconds: tuple[float, ...]
    runs: tuple[SearchRun, ...]

    def draws_to_reach(self, within: float) -> int:
        """Return the median of the random draws until one is near the optimum."""
        return draws_to_reach(self.seconds, (1 + within) * min(self.seconds))

    def slowdown_of_draws(self, count: int) -> float:
        """Return the best of so many random draws over the optimum; a failure counts as the slowest candidate."""
        slowest = max(each for each in self.seconds if each < math.inf)
        seconds = [min(each, slowest) for each in self.seconds]
        return expected_best(seconds, min(count, len(seconds))) / min(seconds)


def _evolution(model: CostModel, space: MeasuredSpace, seed: int) -> SearchStrategy:
    return EvolutionarySearch(space, np.random.default_rng(seed), SharedCostModel(model))


STRATEGIES: Mapping[str, Callable[[MeasuredSpace, int], SearchStrategy]] = {
    MODEL: lambda space, seed: _evolution(XGBoostModel(), space, seed),
    "evolution": lambda space, seed: _evolution(RandomModel(seed), space, seed),
}


def search(space: MeasuredSpace, strategy_name: str, seed: int, *, trials: int, round_size: int) -> SearchRun:
    """Return the course of one search over a measured space."""
    best_s = course(space, STRATEGIES[strategy_name](space, seed), trials=trials, round_size=round_size)
    return SearchRun(space.name, strategy_name, seed, best_s, space.best_s)


def course(space: MeasuredSpace, strategy: SearchStrategy, *, trials: int, round_size: int) -> tuple[float, ...]:
    """Return the best seconds per call after each trial of a search over a measured space; infinite for none."""
    best_s: list[float] = []
    while len(best_s) < trials:
        traces = strategy.suggest(min(round_size, trials - len(best_s)))
        if not traces:
            break
        results = [Observation(trace, space.seconds(trace)) for trace in traces]
        strategy.observe(results)
        for result in results:
            best_s.append(min(result.seconds or math.inf, best_s[-1] if best_s else math.inf))
    return tuple(best_s)


def synthetic_space(shape: tuple[int, int, int]) -> MeasuredSpace:
    """Return a fully enumerated part of the synthetic space of a matrix multiplication."""
    space = SyntheticMatmulSpace(*shape)
    traces = [trace for sketch in space.sketches for trace in enumerate_traces(space, sketch, SYNTHETIC_FIXED)]
    seconds = np.array([space.seconds(trace) or math.inf for trace in traces])
    return MeasuredSpace("synthetic_{}x{}x{}".format(*shape), traces, space.features(traces), seconds)


def measured_space(path: Path) -> MeasuredSpace:
    """Return the space of a file of a measured task: the candidates that are drawn today, one of equal ones.

    Raises:
        UserError: The file cannot be read, holds a sample of a space, or has no legal candidate that works.
    """
    task = read_task(path)
    if not task.complete:
        raise UserError(f"{path} holds a sample of a design space; a search needs all candidates of a part of one")
    traces = list(map(task.space.legal, task.traces))
    rows = [row for row, trace in enumerate(traces) if all(map(_is_drawn, trace.decisions))]
    drawn = [traces[row] for row in rows], task.features()[rows], task.seconds[rows]
    try:
        return MeasuredSpace(f"{task.name}, {task.target.processor}", *drawn)
    except ValueError as error:
        dropped = f"{task.dropped} of its candidates are not legal today"
        raise UserError(f"{path} cannot be searched: {error}; {dropped}") from error


def _is_drawn(decision: Decision) -> bool:
    """Say whether a decision is drawn, and not only equal to one that is."""
    return decision.distribution.canonical(decision.value) == decision.value


def sources_in(paths: Sequence[Path]) -> Sequence[Path | tuple[int, int, int]]:
    """Return the files of tables, those of folders among them; the shapes of synthetic spaces where no path is given.

    Raises:
        UserError: There is no file in the paths.
    """
    files = [file for path in paths for file in (files_in(path) if path.is_dir() else [path])]
    if paths and not files:
        raise UserError(
            f"there is no table in {', '.join(map(str, paths))}: python -m benchmarks corpus collect complete"
        )
    return files or SYNTHETIC_SHAPES


def search_all(
    strategies: Sequence[str], seeds: int, trials: int, round_size: int, source: Path | tuple[int, int, int]
) -> Searched:
    """Return one table with the searches of every strategy and seed."""
    space = measured_space(source) if isinstance(source, Path) else synthetic_space(source)
    pairs = product(strategies, range(seeds))
    runs = tuple(search(space, name, seed, trials=trials, round_size=round_size) for name, seed in pairs)
    return Searched(space.name, tuple(space.seconds(trace) or math.inf for trace in space.traces), runs)


def results_tables(found: Sequence[Searched], within: float, publishing: Publishing) -> Iterator[ResultTable]:
    """Yield two tables of results: the trials that each strategy needs per space, and what each finds in between."""
    runs = [run for each in found for run in each.runs]
    seeds = tuple(sorted({run.seed for run in runs}))
    trials = max(len(run.best_s) for run in runs)
    marks = [mark for mark in COURSE if mark <= trials]
    columns: Columns[Searched] = {
        ResultColumn("candidates", Unit.COUNT): lambda each: len(each.seconds),
        **{ResultColumn(name): partial(_hits_in, name, within) for name in STRATEGIES},
        ResultColumn(RANDOM): lambda each: f"{each.draws_to_reach(within)}",
    }
    yield publishing.table(
        name="search-quality",
        question="search",
        features=True,
        title=f"Trials until a candidate within {100 * within:.3g} % of the best is found",
        threads=1,
        seeds=seeds,
        interleaving=INTERLEAVING,
        spread=f"least and most of {len(seeds)} seeds; random: all orders; `inf` is more than {trials}",
        rows_are="space",
        columns=columns,
        rows=[(each.name, each) for each in found],
        notes=("Medians over the seeds; of random draws, over all orders.",),
    )
    yield publishing.table(
        name="search-courses",
        question="search",
        features=True,
        title="What a search is behind the best of the space, after so many trials",
        threads=1,
        seeds=seeds,
        interleaving=INTERLEAVING,
        spread=f"least and most of {len(seeds)} seeds; random: all orders",
        rows_are="strategy",
        columns={ResultColumn(f"{mark} trials", Unit.SHARE): itemgetter(at) for at, mark in enumerate(marks)},
        rows=[
            *((name, [_course(runs, name, mark, seeds) for mark in marks]) for name in STRATEGIES),
            (RANDOM, [_course_of_draws(found, mark) for mark in marks]),
        ],
        notes=("Best time so far over the best of the space, less 1: geometric means over spaces and seeds.",),
    )


def rounds_table(by_size: Mapping[int, Sequence[SearchRun]], within: float, publishing: Publishing) -> ResultTable:
    """Return a table of results that compares the default strategy with rounds of several sizes."""
    columns: Columns[Sequence[SearchRun]] = {
        **{ResultColumn(f"after {mark}", Unit.NUMBER): partial(_mean_slowdown, mark) for mark in ROUNDS},
        ResultColumn(f"trials to within {100 * within:.3g} %"): partial(_hits, MODEL, within),
    }
    return publishing.table(
        name="rounds",
        question="search",
        features=True,
        title="How large a round is",
        threads=1,
        seeds=sorted({run.seed for runs in by_size.values() for run in runs}),
        interleaving=INTERLEAVING,
        spread="least and most of all spaces and seeds",
        rows_are="candidates of a round",
        columns=columns,
        rows=[(str(size), runs) for size, runs in by_size.items()],
        notes=("The first columns are the best time so far over the best of the space, geometric means.",),
    )


def _mean_slowdown(mark: int, runs: Sequence[SearchRun]) -> float | None:
    mean = math.exp(statistics.fmean(math.log(run.slowdown_at(mark)) for run in runs))
    return mean if mean < math.inf else None


def _hits_in(strategy: str, within: float, found: Searched) -> str:
    return _hits(strategy, within, found.runs)


def _hits(strategy: str, within: float, runs: Sequence[SearchRun]) -> str:
    hits = sorted(run.trials_to_reach(within) for run in runs if run.strategy == strategy)
    return f"{hits[len(hits) // 2]:.0f} ({hits[0]:.0f} to {hits[-1]:.0f})"


def _course(runs: Sequence[SearchRun], name: str, mark: int, seeds: Sequence[int]) -> Figure | None:
    """Return a strategy's mean over spaces and seeds after some trials, with the means of the best and the worst seed.

    None where some search has no valid candidate yet.
    """
    of_seeds = [[run.slowdown_at(mark) for run in runs if (run.strategy, run.seed) == (name, seed)] for seed in seeds]
    if max(map(max, of_seeds)) == math.inf:
        return None
    means = [statistics.geometric_mean(of_seed) for of_seed in of_seeds]
    return figure(statistics.geometric_mean(means) - 1, min(means) - 1, max(means) - 1)


def _course_of_draws(found: Sequence[Searched], mark: int) -> Figure | None:
    return figure(statistics.geometric_mean(each.slowdown_of_draws(mark) for each in found) - 1)


def main() -> None:
    parser = options_of(__doc__)
    what = "tasks that were measured whole: files, or folders of files; none: two synthetic spaces"
    parser.add_argument("tables", nargs="*", type=Path, help=what)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument(
        "--round-size", type=int, nargs="+", default=[TuneOptions.round_size], help="several: they are compared"
    )
    parser.add_argument("--within", type=float, default=0.01, help="how near the optimum counts as reached")
    parser.add_argument("--jobs", type=int, default=1, help="tables searched at the same time")
    parser.add_argument("--json", type=Path)
    args, publishing = parsed(parser)
    sources = sources_in(args.tables)
    sizes = list(dict.fromkeys(args.round_size))
    strategies = list(STRATEGIES) if len(sizes) == 1 else [MODEL]
    with ProcessPoolExecutor(args.jobs) as pool:
        searched = {
            size: [pool.submit(search_all, strategies, args.seeds, args.trials, size, source) for source in sources]
            for size in sizes
        }
        found = {size: [each.result() for each in of_size] for size, of_size in searched.items()}
    by_size = {size: [run for each in of_size for run in each.runs] for size, of_size in found.items()}
    if args.json:
        args.json.write_text(json.dumps([asdict(run) for runs in by_size.values() for run in runs], indent=1) + "\n")
    whole = args.within, publishing
    tables: Iterable[ResultTable] = (
        [rounds_table(by_size, *whole)] if len(sizes) > 1 else results_tables(found[sizes[0]], *whole)
    )
    for each in tables:
        publishing.show(each)
