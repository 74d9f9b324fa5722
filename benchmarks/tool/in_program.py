"""Compares the time of a model's tuned dispatches alone, with warm and with cold weights, with that inside the program.

Usage: ``python -m benchmarks in_program MODEL TUNED [--parameters SCOPE=FILE] [--least-ms 1]``, on one thread.

Warm: every call of a sample takes the same buffers. Cold: as ``tune`` times dispatches of large models, whose constants
no cache of the core holds when a run of the model comes to the dispatch. The program is profiled before and after. A
dispatch's time alone is the median of three sessions, since on a shared machine all times change from minute to minute.
"""

import argparse
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.figures.publishing import options_of
from benchmarks.networks.census.network import tuned_program
from mlir_sched.compiler import CompilerPool
from mlir_sched.program.profile import ProgramProfile
from mlir_sched.program.variants.programs import Source
from mlir_sched.program.whole_program import profile
from mlir_sched.runner import Program, Runner, RunnerOptions
from mlir_sched.runner.checks.numeric_checks import checks_for_task
from mlir_sched.runner.program import program_of_task
from mlir_sched.targets import detect_target
from mlir_sched.targets.target import LOCAL, Target
from mlir_sched.tasks import Model
from mlir_sched.tasks.task import Task
from mlir_sched.tensors.parameters import parameter_files
from mlir_sched.text import console, table
from mlir_sched.transform_scripts.script.reading import extract_sequence
from mlir_sched.tuned_folder.folder import TunedFolder, read_tuned_folder

SESSIONS = 3


@dataclass(frozen=True)
class Row:
    """The times of one dispatch, in seconds per run of the model.

    Attributes:
        name: The dispatch.
        constant_bytes: Size of its constants.
        warm_s, cold_s: Its calls alone.
        inside_s: Its calls inside of the program.
    """

    name: str
    constant_bytes: int
    warm_s: float
    cold_s: float
    inside_s: float


def main() -> None:
    arguments = _parser().parse_args()
    source = Source(arguments.model, detect_target("llvm-cpu", 1), parameter_files(arguments.parameters))
    folder = read_tuned_folder(arguments.tuned)
    built = tuned_program(source, folder)
    model, program, target = built.model, built.vmfb, source.target
    before = _profile(model, program, target)
    rows = list(_rows(model, folder, before, arguments.least_ms * 1e-3))
    after = _profile(model, program, target)
    rows = [replace(row, inside_s=(before.seconds[row.name] + after.seconds[row.name]) / 2) for row in rows]
    _print(sorted(rows, key=lambda row: -row.inside_s))
    print(
        f"all dispatches inside of the program: {before.total_s * 1e3:.2f} ms before, {after.total_s * 1e3:.2f} after"
    )


def _profile(model: Model, program: bytes, target: Target) -> ProgramProfile:
    found = profile(model, program, target, call_s=0.05)
    assert found is not None, "IREE records no profile of this program"
    return found


def _rows(model: Model, folder: TunedFolder, found: ProgramProfile, least_s: float) -> Iterator[Row]:
    symbols = {dispatch["name"]: dispatch["symbol"] for dispatch in folder.summary["dispatches"]}
    with CompilerPool(model.task_flags) as pool, Runner(RunnerOptions.for_device(LOCAL)) as runner:
        for task in model.tasks:
            if not symbols.get(task.name) or found.seconds.get(task.name, 0.0) < least_s:
                continue
            ((_, compiled),) = pool.compile(task.source, [extract_sequence(folder.library, symbols[task.name])])
            assert compiled.vmfb is not None, compiled.failure
            yield _row(runner, task, program_of_task(task, compiled.vmfb))


def _row(runner: Runner, task: Task, cold: Program) -> Row:
    warm = replace(cold, constants=(), reuse_bytes=0)
    seconds = {each: [_seconds(runner, task, each) for _ in range(SESSIONS)] for each in (warm, cold)}
    warm_s, cold_s = (task.weight * statistics.median(seconds[each]) for each in (warm, cold))
    return Row(task.name, sum(task.inputs[i].bytes for i in task.constants), warm_s, cold_s, 0.0)


def _seconds(runner: Runner, task: Task, program: Program) -> float:
    assert task.dispatch is not None
    timing, _ = runner.measure(program, [program], checks_for_task(task))
    return timing.median_s


def _print(rows: Sequence[Row]) -> None:
    numbers = ("constants (MB)", "warm (ms)", "cold (ms)", "inside (ms)", "cold/warm", "inside/cold")
    shown = table("dispatch", *(f">{title}" for title in numbers))
    total = Row("all of these", *(sum(each) for each in zip(*map(_numbers, rows), strict=True)))
    for row in (*rows, total):
        times = (row.constant_bytes / 1e6, row.warm_s * 1e3, row.cold_s * 1e3, row.inside_s * 1e3)
        ratios = (row.cold_s / row.warm_s, row.inside_s / row.cold_s)
        shown.add_row(row.name.rpartition("dispatch_")[2], *(f"{number:.2f}" for number in (*times, *ratios)))
    console().print(shown)


def _numbers(row: Row) -> tuple[int, float, float, float]:
    return row.constant_bytes, row.warm_s, row.cold_s, row.inside_s


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__)
    parser.add_argument("model", type=Path, help="the model")
    parser.add_argument("tuned", type=Path, help="a folder that tune wrote for it")
    parser.add_argument("--parameters", action="append", default=[], metavar="SCOPE=FILE", help="weights of the model")
    parser.add_argument("--least-ms", type=float, default=1.0, help="leave out dispatches that take less per run")
    return parser
