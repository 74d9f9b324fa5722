"""Records that tests store."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from fixed_targets import FIXED

from mlir_sched.database import RecordStore
from mlir_sched.database.record import Origin, Record, StoredTask, context_key
from mlir_sched.errors import Failure, FailureClass
from mlir_sched.outcome import Outcome, Timing, Verdict
from mlir_sched.sampling import Categorical, IntRange, PerfectTile, Permutation, PowerOfTwo
from mlir_sched.trace import Recorder, Trace

TASK = StoredTask(
    "task", "main_dispatch_0", "linalg.matmul 64x64x64", "target", "cpu", "3.13.0", ("-O3", "--x=ä b"), None, FIXED
)
CONTEXT = context_key(threads=1, cpu="test")


def draw_trace(seed: int) -> Trace:
    recorder = Recorder(rng=np.random.default_rng(seed))
    recorder.decide("tile", PerfectTile(1024, 3, max_innermost=64, multiple_of=2))
    recorder.decide("kind", Categorical(("a", "b"), (1.0, 1 / 3)))
    recorder.decide("order", Permutation(("i", "j", "k")))
    recorder.decide("unroll", IntRange(1, 9, 2))
    recorder.decide("lanes", PowerOfTwo(1, 64))
    return recorder.finish("contraction")


def timed(seed: int, *, ratio: float | None = None) -> Outcome:
    drawn = np.random.default_rng(seed).random((2, 3))
    (low, median, high), (ratio_low, middle, ratio_high) = np.sort(drawn).tolist()
    timing = Timing(median, low, high, seed, ratio or middle, ratio_low, ratio_high)
    return Outcome(timing, None, f"{seed:064x}", verdict=Verdict.RIGHT)


def failed(kind: FailureClass, message: str = "why") -> Outcome:
    return Outcome(None, Failure(kind, message))


def make_record(candidate: str, outcome: Outcome | None = None, **changes: object) -> Record:
    seed = sum(candidate.encode())
    record = Record(
        task_key=TASK.key,
        context_key=CONTEXT,
        candidate_key=candidate,
        origin=Origin.SCRIPT,
        trace=draw_trace(seed),
        script=f'module {{ "{candidate}" }}\n',
        outcome=outcome or timed(seed),
        round=3,
        seed=-(2**63),
    )
    return replace(record, **changes)  # type: ignore[arg-type]


def fill_store(path: Path, count: int) -> None:
    with RecordStore.open(path) as store:
        store.add_task(TASK)
        store.add([make_record(f"{index:x}", script="x" * 2000) for index in range(count)])


def everything_in(path: Path) -> tuple[dict[str, StoredTask], dict[tuple[object, ...], Record]]:
    """Return the tasks and the records of a store by their keys."""
    with RecordStore.open(path, read_only=True) as store:
        tasks = {task.key: task for task in store.tasks()}
        records = [r for key in tasks for context in store.contexts(key) for r in store.records(key, context)]
        return tasks, {record.key: record for record in records}
