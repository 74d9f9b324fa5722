"""The speed of mlir-sched itself: traces and records per second, start-up of the command, 64 trials of a 1 ms kernel.

Usage: ``python -m benchmarks tool_speed [--trials 64] [--records 1000 10000] [--long 1000 10000]``. Goals (2 cores):
3,000 traces sampled, checked and featurised per second on one core; 64 trials of a 1 ms kernel in 90 s;
``mlir-sched --help`` in 0.3 s; 1,000 records stored 16 at a time in 2 s and read in 0.5 s; ``growth.py`` says
what a long history may cost.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.folders import MODELS
from benchmarks.tool.growth import long_search, start_with_records
from mlir_sched.database import RecordStore
from mlir_sched.pipeline import tune
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets import detect_target
from mlir_sched.tasks import extract
from mlir_sched.tuning.options import TuneOptions


def traces_per_second(model: Path, count: int = 1000) -> float:
    target = detect_target("llvm-cpu", 1)
    task, *_ = extract(model, target).tasks
    assert task.dispatch is not None
    space = DesignSpace(Space.default(target), task.dispatch, target)
    rng = np.random.default_rng(0)
    space.features([space.sample(rng) for _ in range(50)])
    start = time.perf_counter()
    space.features([space.sample(rng) for _ in range(count)])
    end = time.perf_counter()
    print(f"  {model.stem}: {(end - start) / count * 1e6:.0f} us per legal trace with its features: "
          f"{count / (end - start):.0f} traces/s", flush=True)  # fmt: skip
    return count / (end - start)


def record_store(tuned: Path, count: int = 1000) -> None:
    """Time the record store: add a folder's last record as ``count`` candidates 16 at a time, and read them all."""
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
    print(f"  {count} records stored in {stored - start:.2f} s, read in {end - stored:.2f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--records", type=int, nargs="*", default=[1000, 10_000])
    parser.add_argument("--long", type=int, nargs="*", default=[1000, 10_000])
    arguments = parser.parse_args()
    print("sampling, legality and features:")
    for name in ("matmul_1024", "softmax", "layernorm"):
        traces_per_second(MODELS / f"{name}.mlir")
    print("command line:")
    times = []
    for _ in range(7):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "mlir_sched.cli", "--help"], capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    print(f"  mlir-sched --help: {statistics.median(times):.3f} s (median of 7)", flush=True)
    print(f"tuning {arguments.trials} trials of a 1 ms kernel (matmul 384):")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "matmul.mlir"
        model.write_text((MODELS / "matmul_256.mlir").read_text().replace("256", "384"))
        start = time.perf_counter()
        result = tune(model, Path(folder) / "tuned", options=TuneOptions(trials=arguments.trials, threads=1))
        seconds = time.perf_counter() - start
        print(f"  {seconds:.1f} s start to end, {seconds / arguments.trials:.2f} s per trial, untuned "
              f"{result.program.untuned.median_s * 1e3:.2f} ms, speed-up {result.speedup:.2f}")  # fmt: skip
        print("record store:")
        record_store(Path(folder) / "tuned")
        print("long histories:")
        target = detect_target("llvm-cpu", 1)
        task, *_ = extract(model, target).tasks
        for count in arguments.records:
            start_with_records(task, target, Path(folder), count)
        long_search(task, target, Path(folder), arguments.long)


if __name__ == "__main__":
    main()
