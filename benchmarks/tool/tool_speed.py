"""The speed of mlir-sched itself: traces and records per second, start-up of the command, 64 trials of a 1 ms kernel.

Usage: ``python -m benchmarks tool_speed [--trials 64] [--records 1000 10000] [--long 1000 10000]``. Goals (2 cores):
3,000 traces sampled, checked and featurised per second on one core; 64 trials of a 1 ms kernel in 90 s;
``mlir-sched --help`` in 0.3 s; 1,000 records stored 16 at a time in 2 s and read in 0.5 s; ``growth.py`` says
what a long history may cost, ``compiling.py`` and ``measuring.py`` what is measured of candidates.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.figures.publishing import Publishing, options_of, parsed
from benchmarks.figures.result_table import ResultColumn, ResultTable
from benchmarks.folders import MODELS
from benchmarks.tool.compiling import compiled_candidates
from benchmarks.tool.growth import long_search, start_with_records
from benchmarks.tool.measuring import measured_candidates
from mlir_sched.database import RecordStore
from mlir_sched.pipeline import tune
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets import detect_target
from mlir_sched.targets.target import Target
from mlir_sched.tasks import extract
from mlir_sched.tuning.options import TuneOptions

Line: TypeAlias = tuple[str, str]
"""What was measured, and its figure."""


def traces_per_second(model: Path, target: Target, count: int = 1000) -> Iterator[Line]:
    """Yield how many traces of a model's first dispatch are sampled, checked and featurised per second on one core."""
    task, *_ = extract(model, target).tasks
    assert task.dispatch is not None
    space = DesignSpace(Space.default(target), task.dispatch, target)
    rng = np.random.default_rng(0)
    space.features([space.sample(rng) for _ in range(50)])
    start = time.perf_counter()
    space.features([space.sample(rng) for _ in range(count)])
    seconds = time.perf_counter() - start
    yield f"traces drawn, checked and featurised, {model.stem}", f"{count / seconds:,.0f} per second"


def start_up(runs: int = 7) -> Iterator[Line]:
    """Yield the seconds of commands that only print, the medians of some runs as whole processes, and their imports."""
    for arguments in (("--help",), ("--version",), ("tune", "--help")):
        times = [timed([sys.executable, "-m", "mlir_sched.cli", *arguments])[0] for _ in range(runs)]
        yield f"`mlir-sched {' '.join(arguments)}`, median of {runs}", f"{statistics.median(times):.3f} s"
    _, modules = timed([sys.executable, "-c", "import sys, mlir_sched.cli; print(len(sys.modules))"])
    yield "modules loaded by the command line", modules.strip()


def timed(command: Sequence[str]) -> tuple[float, str]:
    """Run a command, and return its wall-clock seconds and what it prints."""
    start = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.perf_counter() - start, done.stdout


def short_run(model: Path, tuned: Path, trials: int) -> Iterator[Line]:
    """Yield the seconds of a whole run on a kernel of 1 ms."""
    start = time.perf_counter()
    result = tune(model, tuned, options=TuneOptions(trials=trials, threads=1))
    seconds = time.perf_counter() - start
    yield (
        f"{trials} trials of a 1 ms kernel (matmul 384), start to end",
        f"{seconds:.1f} s (untuned {result.program.untuned.median_s * 1e3:.2f} ms, speed-up {result.speedup:.2f})",
    )


def record_store(tuned: Path, count: int = 1000) -> Iterator[Line]:
    """Yield the seconds to add a folder's last record as ``count`` candidates 16 at a time, and to read them all."""
    with RecordStore.open(tuned / "records.sqlite") as store:
        (task, *_) = store.tasks()
        (context, *_) = store.contexts(task.key)
        (*_, record) = store.records(task.key, context)
        further = [replace(record, candidate_key=f"{index:x}") for index in range(count)]
        start = time.perf_counter()
        for first in range(0, count, 16):
            store.add(further[first : first + 16])
        stored = time.perf_counter()
        store.records(task.key, context)
        end = time.perf_counter()
    yield f"{count:,} records stored in batches of 16, then read", f"{stored - start:.2f} s, then {end - stored:.2f} s"


def lines(target: Target, folder: Path, arguments: argparse.Namespace) -> Iterator[Line]:
    """Yield what is measured with its figure, each as soon as it is known."""
    for name in ("matmul_1024", "softmax", "layernorm"):
        yield from traces_per_second(MODELS / f"{name}.mlir", target)
    yield from compiled_candidates(target)
    yield from measured_candidates(target)
    yield from start_up()
    model = folder / "matmul.mlir"
    model.write_text((MODELS / "matmul_256.mlir").read_text().replace("256", "384"))
    yield from short_run(model, folder / "tuned", arguments.trials)
    yield from record_store(folder / "tuned")
    task, *_ = extract(model, target).tasks
    for count in arguments.records:
        yield from start_with_records(task, target, folder, count)
    yield from long_search(task, target, folder, arguments.long)


def results_table(found: Sequence[Line], publishing: Publishing) -> ResultTable:
    """Return the figures as a table of results."""
    return publishing.table(
        name="tool-speed",
        question="tool",
        title="The speed of the tool",
        threads=1,
        seeds=(0,),
        interleaving="Nothing is compared",
        spread="none, one run",
        rows_are="what",
        columns={ResultColumn("figure"): lambda text: text},
        rows=found,
    )


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--records", type=int, nargs="*", default=[1000, 10_000])
    parser.add_argument("--long", type=int, nargs="*", default=[1000, 10_000])
    arguments, publishing = parsed(parser)
    target, found = detect_target("llvm-cpu", 1), list[Line]()
    with tempfile.TemporaryDirectory() as folder:
        for line in lines(target, Path(folder), arguments):
            print(f"{line[0]}: {line[1]}", flush=True)
            found.append(line)
    publishing.add(results_table(found, publishing), target)
