"""What a long history costs: the start of a search with many records, and the trials of a long search.

Nothing is compiled or measured: the figures are those of mlir-sched itself. Goals (2 cores): the first candidate within
5 s with 10,000 records of one dispatch; at most 50 MB more after 10,000 trials than after 1,000, and the same time per
trial. ``tool_speed.py`` prints them and puts them into its table.
"""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import psutil

from mlir_sched.database import RecordStore
from mlir_sched.database.record import Origin, Record, StoredTask, measuring_context
from mlir_sched.evaluation.evaluator import Evaluator
from mlir_sched.evaluation.task_records import TaskRecords
from mlir_sched.models import SharedCostModel, XGBoostModel
from mlir_sched.outcome import Outcome, Timing
from mlir_sched.search import EvolutionarySearch
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.tuning.task_history import TaskHistory
from mlir_sched.tuning.task_search import TaskSearch

ROUND = 64
UNTUNED = Timing(1e-3, 1e-3, 1e-3, 9, 1.0, 1.0, 1.0)


class AtOnce(Evaluator):
    """An evaluator that returns a time at once, which depends on the script alone."""

    def untuned(self, task: Task, following: Sequence[Task] = ()) -> Outcome:
        del task, following
        return Outcome(UNTUNED, None)

    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        del task, known
        for index, script in enumerate(scripts):
            yield index, _outcome(script)


def _outcome(text: str) -> Outcome:
    digest = hashlib.sha256(text.encode()).hexdigest()
    ratio = 0.5 + int(digest[:8], 16) / 2**32
    return Outcome(Timing(1e-3 / ratio, 1e-3 / ratio, 1e-3 / ratio, 9, ratio, ratio, ratio), None, digest)


def _search(store: RecordStore, task: Task, target: Target, sources: str) -> TaskSearch:
    assert task.dispatch is not None
    store.add_task(StoredTask.of(task, target))
    space = DesignSpace(Space.default(target), task.dispatch, target)
    strategy = EvolutionarySearch(space, np.random.default_rng(0), SharedCostModel(XGBoostModel()))
    records = TaskRecords(store, task.key, measuring_context(target), 0, store.last_record(), sources)
    return TaskSearch(task, space, strategy, records, TaskHistory(UNTUNED))


def start_with_records(task: Task, target: Target, folder: Path, count: int) -> Iterator[tuple[str, str]]:
    """Yield the seconds until a search with so many records of its dispatch knows its first candidates."""
    with RecordStore.open(folder / f"{count}.sqlite") as store:
        made = _search(store, task, target, Space.default(target).sources)
        _fill(store, made, count)
        for sources in ("the same", "other"):
            digest = made.stored.sources if sources == "the same" else "changed"
            search = _search(store, task, target, digest)
            start = time.perf_counter()
            search.warm_start()
            (trace, *_) = search.strategy.suggest(8)
            search.space.script(trace)
            seconds = time.perf_counter() - start
            yield f"first candidate of a dispatch with {count:,} records of {sources} sources", f"{seconds:.1f} s"


def _fill(store: RecordStore, search: TaskSearch, count: int) -> None:
    rng, traces = np.random.default_rng(1), dict[str, Trace]()
    while len(traces) < count:
        trace = search.space.sample(rng)
        traces[trace.key] = trace
    script, stored = search.space.script(trace), search.stored
    key = stored.task_key, stored.context
    store.add(
        Record(*key, _outcome(trace.key).binary_hash[:32], Origin.SCRIPT, trace, script, _outcome(trace.key), 0, 0,
               tool=stored.tool)
        for trace in traces.values()
    )  # fmt: skip


def long_search(task: Task, target: Target, folder: Path, marks: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Yield memory and time per trial after so many trials of one search, in ascending order."""
    process, evaluator = psutil.Process(), AtOnce()
    with RecordStore.open(folder / "long.sqlite") as store:
        search = _search(store, task, target, "")
        start, before = time.perf_counter(), 0
        for mark in marks:
            while search.tried < mark:
                if search.tried >= mark - 4 * ROUND and before < mark - 4 * ROUND:
                    start, before = time.perf_counter(), search.tried
                for work in search.round(ROUND, ROUND):
                    work.run(evaluator)
            per_trial_ms = (time.perf_counter() - start) / (search.tried - before) * 1e3
            yield f"memory after {search.tried:,} trials of one search", f"{process.memory_info().rss / 1e6:.0f} MB"
            yield f"time per trial after {search.tried:,}, beside compiling and measuring", f"{per_trial_ms:.0f} ms"
