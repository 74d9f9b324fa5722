"""TVM MetaSchedule as a peer: tunes TVM's own definition of the operator, then runs the best.

Runs in TVM's own environment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.operators.peer import CannotRun, Peer, Prepared, Way, load_module, serve
from benchmarks.operators.tuning import Tuning, kept_tuning

tvm: Any = load_module("tvm", "TVM")
ms: Any = load_module("tvm.s_tir.meta_schedule", "TVM")
workloads: Any = load_module("tvm.s_tir.meta_schedule.testing.te_workload", "TVM")
te: Any = load_module("tvm.te", "TVM")

MATMULS = {"MM1024": (1024, 1024, 1024), "FFN": (128, 3072, 768)}
"""Rows, columns and reduction of the operators that TVM's list lacks."""

BUILD_TIMEOUT_S = 60.0
"""Patience for a candidate's build; MetaSchedule's own 30 s are too few for some on a slow machine."""

BATCH = 64
"""Trials of a round. Source: MetaSchedule's ``num_trials_per_iter``."""

TUNING_CORES = tuple(sorted(os.sched_getaffinity(0)))
"""Cores that the process may use before it is pinned: mlir-sched tunes on all of these, so TVM does, too."""


class TvmPeer(Peer):
    """TVM on the pinned cores; its threads share them."""

    def __init__(self, cores: Sequence[int]) -> None:
        super().__init__(cores)
        cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
        self._target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": len(cores)})

    def empty_call(self) -> Callable[[int], None]:
        x = te.placeholder((1,), "float32", name="x")
        function = te.create_prim_func([x, te.compute((1,), lambda i: x[i] + x[i], name="y")])
        module = tvm.compile(function, target=self._target)
        return _repeated(module["main"], [tvm.runtime.tensor(np.ones(1, np.float32)) for _ in range(2)])

    def prepare(self, request: Mapping[str, Any], inputs: Sequence[np.ndarray[Any, Any]]) -> Prepared:
        name, trials = request["operator"], request["trials"]
        if name not in MATMULS and name not in workloads.CONFIGS:
            raise CannotRun("no equivalent is known")
        if not trials:
            raise CannotRun("not tuned: 0 trials were asked for")
        function = te.create_prim_func(workloads.matmul(*MATMULS[name])) if name in MATMULS else None
        function = function or workloads.create_te_workload(name, 0)
        database, took = self._tuned(function, request)
        schedule = ms.tir_integration.compile_tir(database, function, self._target)
        if schedule is None:
            raise CannotRun("no candidate was valid")
        module = tvm.compile(schedule.mod, target=self._target)
        way = self._way(module["main"], _adapted(name, inputs), request["shape"])
        return Prepared((way,), trials=took.trials, seconds=took.seconds)

    def _tuned(self, function: Any, request: Mapping[str, Any]) -> tuple[Any, Tuning]:
        """Return MetaSchedule's database of the function, and what making it took, now or in an earlier run."""
        work, trials = Path(request["work"]), request["trials"]
        if took := kept_tuning(work):
            return ms.database.JSONDatabase(work_dir=str(work)), took
        start = time.monotonic()
        count = len(TUNING_CORES)
        with _on_cores(TUNING_CORES, afterwards=self.cores):
            database = ms.tune_tir(
                function,
                self._target,
                str(work),
                trials,
                num_trials_per_iter=min(BATCH, trials),
                builder=ms.builder.LocalBuilder(max_workers=count, timeout_sec=BUILD_TIMEOUT_S),
                num_tuning_cores=count,
                seed=request["seed"],
            )
        took = Tuning(len(database.get_all_tuning_records()), time.monotonic() - start)
        took.keep(work)
        return database, took

    def _way(self, call: Any, inputs: Sequence[np.ndarray[Any, Any]], shape: Sequence[int]) -> Way:
        output = tvm.runtime.tensor(np.zeros(shape, np.float32))
        tensors = [*(tvm.runtime.tensor(array) for array in inputs), output]
        run = _repeated(call, tensors)

        def result() -> np.ndarray[Any, Any]:
            run(1)
            made: np.ndarray[Any, Any] = output.numpy()
            return made

        return Way("TVM MetaSchedule", "", run, result)


@contextmanager
def _on_cores(cores: Sequence[int], *, afterwards: Sequence[int]) -> Iterator[None]:
    """Have the process, and those that it starts, on some cores for a while."""
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, afterwards)


def _adapted(name: str, inputs: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Return the inputs in the shapes that TVM's definition takes; the depthwise filter has a leading factor there."""
    if name != "DEP":
        return list(inputs)
    image, kernel = inputs
    return [image, kernel[None]]


def _repeated(call: Any, tensors: Sequence[Any]) -> Callable[[int], None]:
    def run(calls: int) -> None:
        for _ in range(calls):
            call(*tensors)

    return run


if __name__ == "__main__":
    serve(TvmPeer)
