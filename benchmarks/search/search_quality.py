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
from mlir_sched import TuneOptions
from mlir_sched.corpus.files import files_in, read_task
from mlir_sched.errors import UserError
from mlir_sched.models import CostModel, RandomModel, SharedCostModel, XGBoostModel
from mlir_sched.sampling import Value
from mlir_sched.search import EvolutionarySearch, Observation, RandomSearch, SearchStrategy
from mlir_sched.search.synthetic_space import SyntheticMatmulSpace

INTERLEAVING = "The strategies search in tables that were measured point by point"
COURSE = (8, 16, 24, 32, 48, 64, 96, 128, 192)
"""Trials after which the best is published."""
ROUNDS = (16, 32, 64)
"""Trials after which rounds of several sizes are compared."""
MODEL = "evolution+model"
"""The default strategy."""
SYNTHETIC_SHAPES = ((32, 48, 16), (24, 64, 16))
SYNTHETIC_FIXED: Mapping[str, Value] = {"order": ("m", "n", "k"), "unroll": 2}


@dataclass(frozen=True)
class SearchRun:
    """The course of one search.

    Attributes:
        task, strategy, seed: The space, strategy and seed of the search.
        candidates: Candidates of the whole space.
        best_s: Best seconds per call after each trial; infinite while all candidates have failed.
        optimum_s: Seconds per call of the fastest candidate of the table.
    """

    task: str
    strategy: str
    seed: int
    candidates: int
    best_s: tuple[float, ...]
    optimum_s: float

    def trials_to_reach(self, within: float) -> float:
        """Return the trials until the best is at most ``1 + within`` times the optimum; infinite if it never is."""
        limit = (1.0 + within) * self.optimum_s
        return next((float(trial) for trial, best in enumerate(self.best_s, 1) if best <= limit), math.inf)

    def slowdown_at(self, trial: int) -> float:
        """Return best / optimum after a number of trials, or after the last one."""
        return self.best_s[min(trial, len(self.best_s)) - 1] / self.optimum_s


def _evolution(model: CostModel, space: MeasuredSpace, seed: int) -> SearchStrategy:
    return EvolutionarySearch(space, np.random.default_rng(seed), SharedCostModel(model))


STRATEGIES: Mapping[str, Callable[[MeasuredSpace, int], SearchStrategy]] = {
    MODEL: lambda space, seed: _evolution(XGBoostModel(), space, seed),
    "evolution": lambda space, seed: _evolution(RandomModel(seed), space, seed),
    "random": lambda space, seed: RandomSearch(space, np.random.default_rng(seed)),
}


def search(space: MeasuredSpace, strategy_name: str, seed: int, *, trials: int, round_size: int) -> SearchRun:
    """Return the course of one search over a measured space."""
    strategy = STRATEGIES[strategy_name](space, seed)
    best_s: list[float] = []
    while len(best_s) < trials:
        traces = strategy.suggest(min(round_size, trials - len(best_s)))
        if not traces:
            break
        results = [Observation(trace, space.seconds(trace)) for trace in traces]
        strategy.observe(results)
        for result in results:
            best_s.append(min(result.seconds or math.inf, best_s[-1] if best_s else math.inf))
    return SearchRun(space.name, strategy_name, seed, len(space.traces), tuple(best_s), space.best_s)


def synthetic_space(shape: tuple[int, int, int]) -> MeasuredSpace:
    """Return a fully enumerated part of the synthetic space of a matrix multiplication."""
    space = SyntheticMatmulSpace(*shape)
    traces = [trace for sketch in space.sketches for trace in enumerate_traces(space, sketch, SYNTHETIC_FIXED)]
    seconds = np.array([space.seconds(trace) or math.inf for trace in traces])
    return MeasuredSpace("synthetic_{}x{}x{}".format(*shape), traces, space.features(traces), seconds)


def measured_space(path: Path) -> MeasuredSpace:
    """Return the space of a file of a measured task, as far as its candidates are legal today.

    Raises:
        UserError: The file cannot be read, holds a sample of a space, or has no legal candidate that works.
    """
    task = read_task(path)
    if not task.complete:
        raise UserError(f"{path} holds a sample of a design space; a search needs all candidates of a part of one")
    try:
        return MeasuredSpace(f"{task.name}, {task.target.processor}", task.traces, task.features(), task.seconds)
    except ValueError as error:
        dropped = f"{task.dropped} of its candidates are not legal today"
        raise UserError(f"{path} cannot be searched: {error}; {dropped}") from error


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
) -> list[SearchRun]:
    """Return the searches of every strategy and seed over one table."""
    space = measured_space(source) if isinstance(source, Path) else synthetic_space(source)
    pairs = product(strategies, range(seeds))
    return [search(space, name, seed, trials=trials, round_size=round_size) for name, seed in pairs]


def results_tables(runs: Sequence[SearchRun], within: float, publishing: Publishing) -> Iterator[ResultTable]:
    """Yield two tables of results: the trials that each strategy needs per space, and what each finds in between."""
    seeds = tuple(sorted({run.seed for run in runs}))
    trials = max(len(run.best_s) for run in runs)
    marks = [mark for mark in COURSE if mark <= trials]
    columns: Columns[Sequence[SearchRun]] = {
        ResultColumn("candidates", Unit.COUNT): lambda of_task: of_task[0].candidates,
        **{ResultColumn(name): partial(_hits, name, within) for name in STRATEGIES},
    }
    yield publishing.table(
        name="search-quality",
        question="search",
        title=f"Trials until a candidate within {100 * within:.3g} % of the best is found",
        threads=1,
        seeds=seeds,
        interleaving=INTERLEAVING,
        spread=f"least and most of {len(seeds)} seeds; `inf` is more than {trials}",
        rows_are="space",
        columns=columns,
        rows=_by_task(runs).items(),
    )
    yield publishing.table(
        name="search-courses",
        question="search",
        title="What a search is behind the best of the space, after so many trials",
        threads=1,
        seeds=seeds,
        interleaving=INTERLEAVING,
        spread=f"least and most of {len(seeds)} seeds",
        rows_are="strategy",
        columns={ResultColumn(f"{mark} trials", Unit.SHARE): itemgetter(at) for at, mark in enumerate(marks)},
        rows=[(name, [_course(runs, name, mark, seeds) for mark in marks]) for name in STRATEGIES],
        notes=("Best time so far over the best of the space, less 1: geometric means over the spaces.",),
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


def _by_task(runs: Sequence[SearchRun]) -> dict[str, list[SearchRun]]:
    return {task: [run for run in runs if run.task == task] for task in dict.fromkeys(run.task for run in runs)}


def _hits(strategy: str, within: float, runs: Sequence[SearchRun]) -> str:
    hits = sorted(run.trials_to_reach(within) for run in runs if run.strategy == strategy)
    return f"{hits[len(hits) // 2]:.0f} ({hits[0]:.0f} to {hits[-1]:.0f})"


def _course(runs: Sequence[SearchRun], name: str, mark: int, seeds: Sequence[int]) -> Figure | None:
    """Return a strategy's mean over the spaces after some trials; None where some search has no valid candidate yet."""
    of_seeds = [[run.slowdown_at(mark) for run in runs if (run.strategy, run.seed) == (name, seed)] for seed in seeds]
    means = [math.exp(sum(map(math.log, found)) / len(found)) for found in of_seeds]
    behind = [mean - 1 for mean in means]
    return figure(statistics.median(behind), min(behind), max(behind)) if max(behind) < math.inf else None


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
        by_size = {size: [run for each in found for run in each.result()] for size, found in searched.items()}
    first, *others = by_size.values()
    if args.json:
        args.json.write_text(json.dumps([asdict(run) for runs in by_size.values() for run in runs], indent=1) + "\n")
    whole = args.within, publishing
    tables: Iterable[ResultTable] = [rounds_table(by_size, *whole)] if others else results_tables(first, *whole)
    for each in tables:
        publishing.show(each)
