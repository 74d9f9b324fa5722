"""How well the model of a GPU's time ranks candidates that were measured on the GPU; needs no GPU itself.

``python -m benchmarks time_model [FILE ...] [--target TARGET]``: files of measured candidates, by default those of
``benchmarks/data/h200``, each named after a program of ``benchmarks/models``. The candidates are compiled and assembled
for ``TARGET``, as ``tune --check-only`` takes it: an architecture, or a file that describes the GPU. The table has, per
dispatch, how estimates and measured times agree (Spearman's rank correlation), and how far the candidates that the
model likes best are from the fastest one.

``--collect FOLDER ...`` writes such files from folders that ``python -m benchmarks device_check --keep`` keeps.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.figures.publishing import Publishing, options_of, parsed
from benchmarks.figures.result_table import Columns, Figure, ResultColumn, ResultTable, Unit
from benchmarks.folders import DATA, path_of
from benchmarks.search.measured_space import MeasuredPoint, read_measured, write_measured
from mlir_sched.database import RecordStore
from mlir_sched.errors import UserError
from mlir_sched.evaluation.estimating import CompileAndAssemble
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets import absent_target
from mlir_sched.targets.target import Target
from mlir_sched.tasks import extract
from mlir_sched.tasks.task import Task

H200 = DATA / "h200"
"""Candidates that searches measured on an NVIDIA H200 (the benchmark ``device_check``), 2026-11-26."""
SUFFIX = ".jsonl.gz"
FAVOURITES = 4


@dataclass(frozen=True)
class Ranking:
    """What the model says of the candidates of a program's dispatch.

    Attributes:
        program: Name of the program.
        measured_s: Measured seconds per candidate.
        estimated_s: Estimated seconds per candidate; infinite where the code is refused, e.g. for spilled registers.
    """

    program: str
    measured_s: Sequence[float]
    estimated_s: Sequence[float]

    @property
    def refused(self) -> int:
        """Candidates without an estimate."""
        return len(self.measured_s) - int(np.isfinite(self.estimated_s).sum())

    @property
    def correlation(self) -> float:
        """Spearman's rank correlation of the candidates that have an estimate."""
        known = np.isfinite(self.estimated_s)
        ranks = [np.argsort(np.argsort(np.array(seconds)[known])) for seconds in (self.measured_s, self.estimated_s)]
        correlations = np.asarray(np.corrcoef(np.stack(ranks)))
        return float(correlations[0, 1])

    def excess(self, favourites: int) -> float:
        """Return the best time of so many candidates that the model likes best, relative to the best of all."""
        order = np.argsort(self.estimated_s, kind="stable")[:favourites]
        return float(np.array(self.measured_s)[order].min() / min(self.measured_s))


def ranking_of(file: Path, target: Target) -> Ranking:
    """Return what the model says of the candidates of a file.

    Raises:
        UserError: The file or its program cannot be read, or the program has no dispatch of the file's name.
    """
    measured_space, program = read_measured(file), file.name.removesuffix(SUFFIX)
    task = _task_named(measured_space.task, path_of(program), target)
    space, points = _space_of(task, target), measured_space.points
    measured = [(space.script(point.trace), point.seconds) for point in points if point.seconds is not None]
    with CompileAndAssemble(task.flags, target) as evaluator:
        outcomes = dict(evaluator.evaluate(task, [script for script, _ in measured], {}))
    timings = [outcomes[index].timing for index in range(len(measured))]
    estimated_s = [timing.median_s if timing is not None else np.inf for timing in timings]
    return Ranking(program, [seconds for _, seconds in measured], estimated_s)


COLUMNS: Columns[Ranking] = {
    ResultColumn("candidates", Unit.COUNT): lambda ranking: len(ranking.measured_s),
    ResultColumn("refused", Unit.COUNT): lambda ranking: ranking.refused,
    ResultColumn("measured", Unit.SECONDS): lambda ranking: Figure(
        None, min(ranking.measured_s), max(ranking.measured_s)
    ),
    ResultColumn("correlation", Unit.NUMBER): lambda ranking: ranking.correlation,
    ResultColumn("model's first", Unit.RATIO): lambda ranking: ranking.excess(1),
    ResultColumn(f"best of its first {FAVOURITES}", Unit.RATIO): lambda ranking: ranking.excess(FAVOURITES),
}


def results_table(found: Sequence[Ranking], publishing: Publishing) -> ResultTable:
    """Return a table of results with a row per program."""
    return publishing.table(
        name="time-model",
        question="devices",
        title="The model of time against measured times",
        threads=0,
        seeds=[],
        interleaving="Nothing is measured again",
        spread="least and largest measured time",
        rows_are="program",
        columns=COLUMNS,
        rows=[(each.program, each) for each in found],
    )


def collect(folder: Path, target: Target) -> Path:
    """Write the candidates of the dispatch of a tuned folder that has most of them, and return the file.

    Raises:
        UserError: The folder is not named after a program of the benchmarks, or no dispatch of it was measured.
    """
    path, store_file = path_of(folder.name), folder / "records.sqlite"
    with RecordStore.open(store_file, read_only=True) as store:
        tried = {
            stored.name: [
                (record.trace, record.outcome.timing)
                for context in store.contexts(stored.key)
                for record in store.records(stored.key, context)
                if record.trace is not None
            ]
            for stored in store.tasks()
        }
    if not any(tried.values()):
        raise UserError(f"{store_file}: no candidate was measured")
    name = max(tried, key=lambda each: len(tried[each]))
    space = _space_of(_task_named(name, path, target), target)
    found = {(repaired := space.repaired(trace)).key: (repaired, timing) for trace, timing in tried[name]}
    features = space.features([trace for trace, _ in found.values()])
    H200.mkdir(exist_ok=True)
    file = H200 / f"{folder.name}{SUFFIX}"
    points = zip(found.values(), features.tolist(), strict=True)
    write_measured(
        file,
        name,
        [MeasuredPoint(trace, tuple(row), timing.median_s if timing else None) for (trace, timing), row in points],
    )
    return file


def main() -> None:
    arguments, publishing = parsed(_parser())
    target = absent_target(arguments.target)
    if arguments.collect:
        for folder in arguments.collect:
            print(collect(folder, target))
        return
    found = [ranking_of(file, target) for file in arguments.files or sorted(H200.glob(f"*{SUFFIX}"))]
    print(f"estimates: {target.processor}")
    publishing.show(results_table(found, publishing), target)


def _task_named(name: str, path: Path, target: Target) -> Task:
    for task in extract(path, target).tasks:
        if task.name == name and task.dispatch is not None:
            return task
    raise UserError(f"{path}: no dispatch {name}")


def _space_of(task: Task, target: Target) -> DesignSpace:
    assert task.dispatch is not None
    return DesignSpace(Space.default(target), task.dispatch, target)


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--target", default="cuda:sm_90", help="the device of the estimates, as for --check-only")
    parser.add_argument("--collect", nargs="+", type=Path, metavar="FOLDER", help="write the files of tuned folders")
    return parser
