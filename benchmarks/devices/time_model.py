"""How well the model of a GPU's time ranks candidates that were measured on the GPU; needs no GPU itself.

``python -m benchmarks time_model [FILE ...] [--target TARGET]``: files of measured candidates, by default those of
``benchmarks/data/h200``, each named after a program of ``benchmarks/models``. The candidates are compiled and assembled
for ``TARGET``, as ``tune --check-only`` takes it: an architecture, or a file that describes the GPU. The table has, per
dispatch, how estimates and measured times agree (Spearman's rank correlation), and how far the candidates that the
model likes best are from the fastest one.

``--collect FOLDER ...`` writes such files (docs/corpus.md) from folders that ``python -m benchmarks device_check
--keep`` keeps. Files of the format in front of that one are read, too: they say nothing of the untuned code, nor of the
machine, and can only be measured anew. Their first line is ``{"format": "mlir-sched measured space 1", "task":
NAME}``, each other line ``{"trace": {...}, "seconds": 0.00012}`` or, for a failure, ``"seconds": null``; further keys
are ignored.
"""

import argparse
import gzip
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.figures.publishing import Publishing, options_of, parsed
from benchmarks.figures.result_table import Columns, Figure, ResultColumn, ResultTable, Unit
from benchmarks.folders import DATA, path_of
from mlir_sched.compiler.reasons import reason
from mlir_sched.corpus import Corpus
from mlir_sched.corpus.files import SUFFIX, read_task, write_task
from mlir_sched.database import RecordStore
from mlir_sched.errors import IllegalTraceError, UserError
from mlir_sched.evaluation.estimating import CompileAndAssemble
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets import absent_target
from mlir_sched.targets.target import Target
from mlir_sched.tasks import extract
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace

H200 = DATA / "h200"
"""Candidates that searches measured on an NVIDIA H200 (the benchmark ``device_check``), 2026-11-26."""
FIRST_FORMAT = "mlir-sched measured space 1"
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
    (name, measured), program = measured_in(file), file.name.removesuffix(SUFFIX)
    task = _task_named(name, path_of(program), target)
    assert task.dispatch is not None
    space = DesignSpace(Space.default(target), task.dispatch, target)
    with CompileAndAssemble(task.flags, target) as evaluator:
        outcomes = dict(evaluator.evaluate(task, [space.script(trace) for trace, _ in measured], {}))
    timings = [outcomes[index].timing for index in range(len(measured))]
    estimated_s = [timing.median_s if timing is not None else np.inf for timing in timings]
    return Ranking(program, [seconds for _, seconds in measured], estimated_s)


def measured_in(file: Path) -> tuple[str, list[tuple[Trace, float]]]:
    """Return the name of the task of a file, and its valid candidates with their seconds per call.

    Raises:
        UserError: The file is missing, damaged or of another format.
    """
    try:
        header, *lines = map(json.loads, gzip.decompress(file.read_bytes()).splitlines())
        if header["format"] == FIRST_FORMAT:
            valid = [line for line in lines if line["seconds"] is not None]
            return str(header["task"]), [(Trace.from_json(each["trace"]), float(each["seconds"])) for each in valid]
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, IllegalTraceError) as error:
        raise UserError(f"{file} is no file of measured candidates: {reason(str(error))}") from error
    task = read_task(file)
    return task.name, [(each.trace, each.seconds) for each in task.measured if each.failure is None]


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


def collect(folder: Path) -> Path:
    """Write the candidates of the dispatch of a tuned folder that has most of them, and return the file.

    Raises:
        UserError: The folder is not named after a program of the benchmarks, or no dispatch of it was measured.
    """
    path_of(folder.name)
    store_file = folder / "records.sqlite"
    with RecordStore.open(store_file, read_only=True) as store:
        tasks = Corpus.of_store(store).tasks
    if not tasks:
        raise UserError(f"{store_file}: no candidate was measured")
    file = H200 / f"{folder.name}{SUFFIX}"
    write_task(file, max(tasks, key=lambda task: len(task.measured)))
    return file


def main() -> None:
    arguments, publishing = parsed(_parser())
    target = absent_target(arguments.target)
    if arguments.collect:
        for folder in arguments.collect:
            print(collect(folder))
        return
    found = [ranking_of(file, target) for file in arguments.files or sorted(H200.glob(f"*{SUFFIX}"))]
    print(f"estimates: {target.processor}")
    publishing.show(results_table(found, publishing), target)


def _task_named(name: str, path: Path, target: Target) -> Task:
    for task in extract(path, target).tasks:
        if task.name == name and task.dispatch is not None:
            return task
    raise UserError(f"{path}: no dispatch {name}")


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--target", default="cuda:sm_90", help="the device of the estimates, as for --check-only")
    parser.add_argument("--collect", nargs="+", type=Path, metavar="FOLDER", help="write the files of tuned folders")
    return parser
