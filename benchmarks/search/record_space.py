"""Measures every point of a small design space and writes it as a table for ``search_quality.py``.

Some decisions are pinned to one value so that the rest can be enumerated. Usage:
``python -m benchmarks record_space [NAME ...]``; tables go to benchmarks/data/NAME.jsonl.gz.
"""

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.folders import DATA, MODELS
from benchmarks.search.enumeration import enumerate_traces
from benchmarks.search.measured_space import MeasuredPoint, write_measured
from mlir_sched.database import RecordStore
from mlir_sched.database.record import StoredTask, measuring_context
from mlir_sched.errors import IllegalTraceError
from mlir_sched.evaluation.evaluator import CompileAndRun, seconds_against
from mlir_sched.evaluation.task_records import TaskRecords
from mlir_sched.runner import RunnerOptions
from mlir_sched.sampling import Value
from mlir_sched.search.strategy import SearchSpace, SearchStrategy
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets import detect_target
from mlir_sched.tasks import extract
from mlir_sched.trace import Trace
from mlir_sched.tuning.task_history import TaskHistory
from mlir_sched.tuning.task_search import TaskSearch

ROUND_SIZE = 16


@dataclass(frozen=True)
class Case:
    """One table: a program, a sketch of its only dispatch, and the decisions that are pinned."""

    program: str
    sketch: str
    pinned: Mapping[str, Value]


def _matmul(m: int, n: int, k: int) -> str:
    return f"""
func.func @matmul(%lhs: tensor<{m}x{k}xf32>, %rhs: tensor<{k}x{n}xf32>) -> tensor<{m}x{n}xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{m}x{n}xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %result = linalg.matmul ins(%lhs, %rhs : tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>)
      outs(%init : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  return %result : tensor<{m}x{n}xf32>
}}
"""


def _softmax(rows: int, columns: int) -> str:
    shape = f"tensor<{rows}x{columns}xf32>"
    return f"""
func.func @softmax(%scores: {shape}) -> {shape} {{
  %empty = tensor.empty() : {shape}
  %result = linalg.softmax dimension(1) ins(%scores : {shape}) outs(%empty : {shape}) -> {shape}
  return %result : {shape}
}}
"""


CASES = {
    "matmul_256": Case(
        _matmul(256, 256, 256),
        "contraction.registers",
        {
            "workgroup_0": (256,),
            "workgroup_1": (256,),
            "cache_order": ("columns", "rows"),
            "register_order": ("columns", "rows"),
            "reduction_step": (4,),
        },
    ),
    "vecmat_512": Case(
        _matmul(1, 512, 512), "contraction.cache", {"workgroup_1": (512,), "cache_order": ("reduction", "columns")}
    ),
    "softmax_64x128": Case(_softmax(64, 128), "reduction", {}),
    "conv1d": Case((MODELS / "conv1d.mlir").read_text(), "convolution", {"workgroup_1": (128,)}),
    "grouped_conv2d": Case(
        (MODELS / "grouped_conv2d.mlir").read_text(),
        "convolution",
        {"workgroup_0": (28,), "workgroup_1": (28,), "workgroup_2": (1,), "innermost": "channels"},
    ),
    "transposed_batch_matmul": Case(
        (MODELS / "transposed_batch_matmul.mlir").read_text(),
        "contraction.registers",
        {
            "workgroup_0": (1,),
            "workgroup_1": (128,),
            "workgroup_2": (128,),
            "register_order": ("columns", "rows"),
            "reduction_step": (4,),
        },
    ),
}


class GivenTraces(SearchStrategy):
    """A strategy that suggests given traces in order, repaired for the space; traces beyond repair are dropped.

    Args:
        space: What the traces are repaired for; it may be of another shape or target than the traces came from.
        rng: Not used; every strategy takes a generator.
        traces: The candidates.

    Source: MetaSchedule's ReplayTrace (TVM ``replay_trace.cc``), which redraws the decisions instead.
    """

    def __init__(self, space: SearchSpace, rng: np.random.Generator, traces: Sequence[Trace]) -> None:
        super().__init__(space, rng)
        self._waiting = list(reversed(traces))

    def propose(self, count: int) -> list[Trace]:
        """See :meth:`SearchStrategy.propose`."""
        proposed: dict[str, Trace] = {}
        while self._waiting and len(proposed) < count:
            trace = self._repaired(self._waiting.pop())
            if trace is not None and trace.key not in self._seen:
                proposed.setdefault(trace.key, trace)
        return list(proposed.values())

    def _repaired(self, trace: Trace) -> Trace | None:
        try:
            return self.space.repaired(trace)
        except IllegalTraceError:
            return None


def record(name: str, case: Case, store: RecordStore) -> None:
    """Measure the points of a case that are not in the store yet, and write the case's table."""
    target = detect_target("llvm-cpu", 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mlir"
        path.write_text(case.program)
        (task,) = [task for task in extract(path, target).tasks if task.dispatch is not None]
    assert task.dispatch is not None
    space = DesignSpace(Space.default(target), task.dispatch, target)
    traces = list(enumerate_traces(space, case.sketch, case.pinned))
    print(f"{name}: {len(traces)} points", flush=True)
    context = measuring_context(target)
    store.add_task(StoredTask.of(task, target))
    with CompileAndRun(task.flags, RunnerOptions()) as evaluator:
        stored = TaskRecords(store, task.key, context, seed=0)
        untuned = stored.untuned() or stored.settle_untuned(evaluator.untuned(task))
        strategy = GivenTraces(space, np.random.default_rng(0), traces)
        search = TaskSearch(task, space, strategy, stored, TaskHistory(untuned))
        while not search.exhausted:
            for work in search.round(ROUND_SIZE, ROUND_SIZE):
                work.run(evaluator)
            if search.measured % (10 * ROUND_SIZE) < ROUND_SIZE:
                print(f"{name}: {search.tried} tried", flush=True)
    records = [search.history.records[trace.key] for trace in traces]
    rows = space.features(traces).tolist()
    points = [
        MeasuredPoint(trace, tuple(row), seconds_against(record.outcome.valid, untuned))
        for trace, row, record in zip(traces, rows, records, strict=True)
    ]
    DATA.mkdir(exist_ok=True)
    write_measured(DATA / f"{name}.jsonl.gz", task.name, points)
    times = sorted(point.seconds for point in points if point.seconds is not None)
    print(f"{name}: best {times[0] * 1e6:.1f} us, median {times[len(times) // 2] * 1e6:.1f} us, "
          f"untuned {untuned.median_s * 1e6:.1f} us, {len(points) - len(times)} failed")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks record_space", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*CASES, []], default=[])
    parser.add_argument("--store", type=Path, help="keep the measurements there, for a run that goes on")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, RecordStore.open(arguments.store or Path(folder) / "store") as store:
        for name in arguments.names or CASES:
            record(name, CASES[name], store)
