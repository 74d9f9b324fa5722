"""The speed of the record store: additions per second, and the times to open it, read it and query the best record."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mlir_sched.database import RecordStore
from mlir_sched.database.record import Origin, Record, StoredTask
from mlir_sched.outcome import Outcome, Timing, Verdict
from mlir_sched.sampling import Categorical, IntRange, PerfectTile, Permutation
from mlir_sched.targets.target import LOCAL, Target
from mlir_sched.trace import Recorder

RECORDS = 10_000
ROUND_SIZE = 16
SCRIPT = "  %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [8, 32]\n" * 80
TARGET = Target("llvm-cpu", "llvm-cpu", LOCAL, (), "cpu", "3.13.0", "a CPU", 1, 64, 32)
TASK = StoredTask("task", "dispatch_0", "linalg.matmul 1024x1024x1024", TARGET.key, "cpu", "3.13.0", (), None, TARGET)


def make_record(index: int, rng: np.random.Generator) -> Record:
    """Return a record of the size that tuning a contraction makes: ten decisions, a script of 6 KB."""
    recorder = Recorder(rng=rng)
    for name in ("m", "n", "k"):
        recorder.decide(f"cache_{name}", PerfectTile(1024, 2, max_innermost=64))
        recorder.decide(f"unroll_{name}", IntRange(1, 8))
    recorder.decide("order", Permutation(("i", "j", "k")))
    for name in ("pattern", "tail", "epilogue"):
        recorder.decide(name, Categorical(("a", "b", "c")))
    median, ratio = (float(value) for value in rng.random(2))
    outcome = Outcome(Timing(median, median, median, 24, ratio, ratio, ratio), None, "ab" * 32, verdict=Verdict.RIGHT)
    trace = recorder.finish("contraction")
    return Record(
        "task", "threads=1", f"{index:016x}", Origin.SCRIPT, trace, SCRIPT, outcome, index // ROUND_SIZE, seed=0
    )


def timed(call: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def main() -> None:
    rng = np.random.default_rng(0)
    records = [make_record(index, rng) for index in range(RECORDS)]
    rounds = [records[start : start + ROUND_SIZE] for start in range(0, RECORDS, ROUND_SIZE)]
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        path = Path(folder) / "store.db"
        with RecordStore.open(path) as store:
            store.add_task(TASK)
            seconds = timed(lambda: [store.add(each) for each in rounds])
        print(f"add {ROUND_SIZE} at a time: {RECORDS / seconds:.0f} records/s")
        print(f"file: {path.stat().st_size / 1e6:.0f} MB for {RECORDS} records")
        print(f"open, with the check for damage: {timed(lambda: RecordStore.open(path).close()) * 1e3:.0f} ms")
        with RecordStore.open(path, read_only=True) as store:
            print(f"read {RECORDS} records: {timed(lambda: store.records('task', 'threads=1')):.2f} s")
            print(f"best: {timed(lambda: store.best('task', 'threads=1')) * 1e3:.0f} ms")
