"""TVM MetaSchedule as a peer: tunes TVM's own definition of the operator, then runs the best schedule.

Runs in TVM's own environment.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.metaschedule import (
    LABEL,
    POPULATION_PER_TRIAL,
    TUNING_CORES,
    cpu_target,
    ms,
    on_cores,
    pin_threads,
    search_note,
    search_options,
    tvm,
)
from benchmarks.peers.peer import CannotRun, Peer, Prepared, Way, load_module, serve
from benchmarks.peers.tuning import Tuning, kept_tuning

workloads: Any = load_module("tvm.s_tir.meta_schedule.testing.te_workload", "TVM")
te: Any = load_module("tvm.te", "TVM")

MATMULS = {"MM1024": (1024, 1024, 1024), "FFN": (128, 3072, 768)}
"""Rows, columns and reduction of the operators that TVM's list lacks."""


class TvmPeer(Peer):
    """TVM on the pinned cores, with a thread on each."""

    def __init__(self, cores: Sequence[int]) -> None:
        super().__init__(cores)
        self._target = cpu_target(cores)

    def prepare(self, request: Mapping[str, Any], inputs: Sequence[np.ndarray[Any, Any]]) -> Prepared:
        name = request["operator"]
        if name not in MATMULS and name not in workloads.CONFIGS:
            raise CannotRun("no equivalent is known")
        if not request["trials"]:
            raise CannotRun("not tuned: 0 trials were asked for")
        function = te.create_prim_func(workloads.matmul(*MATMULS[name])) if name in MATMULS else None
        function = function or workloads.create_te_workload(name, 0)
        database, took = self._tuned(function, request)
        schedule = ms.tir_integration.compile_tir(database, function, self._target)
        if schedule is None:
            raise CannotRun("no candidate was valid")
        module = tvm.compile(schedule.mod, target=self._target)
        way = self._way(module["main"], _adapted(name, inputs), request["shape"])
        pin_threads(self.cores)
        note = search_note(request["round_size"])
        return Prepared((way,), {"": self._empty_call()}, {LABEL: took}, (note,))

    def _tuned(self, function: Any, request: Mapping[str, Any]) -> tuple[Any, Tuning]:
        """Return MetaSchedule's database of the function, and the trials and seconds of making it, now or earlier.

        MetaSchedule cannot resume a tuning run: the work of a run that was killed is discarded and does not count.
        """
        trials, round_size = request["trials"], request["round_size"]
        work = Path(request["work"]) / f"rounds-of-{round_size}-from-{POPULATION_PER_TRIAL * round_size}"
        if took := kept_tuning(work):
            return ms.database.JSONDatabase(work_dir=str(work)), took
        shutil.rmtree(work, ignore_errors=True)
        start = time.monotonic()
        with on_cores(TUNING_CORES, afterwards=self.cores):
            database = ms.tune_tir(
                function,
                self._target,
                str(work),
                trials,
                num_tuning_cores=len(TUNING_CORES),
                seed=request["seed"],
                **search_options(min(round_size, trials)),
            )
        took = Tuning(len(database.get_all_tuning_records()), time.monotonic() - start)
        took.keep(work)
        return database, took

    def _empty_call(self) -> Callable[[int], None]:
        x = te.placeholder((1,), "float32", name="x")
        function = te.create_prim_func([x, te.compute((1,), lambda i: x[i] + x[i], name="y")])
        module = tvm.compile(function, target=self._target)
        return _repeated(module["main"], [tvm.runtime.tensor(np.ones(1, np.float32)) for _ in range(2)])

    def _way(self, call: Any, inputs: Sequence[np.ndarray[Any, Any]], shape: Sequence[int]) -> Way:
        output = tvm.runtime.tensor(np.zeros(shape, np.float32))
        tensors = [*(tvm.runtime.tensor(array) for array in inputs), output]
        run = _repeated(call, tensors)

        def results() -> list[np.ndarray[Any, Any]]:
            run(1)
            return [output.numpy()]

        return Way(LABEL, "", run, results)


def _adapted(name: str, inputs: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Return the inputs in the shapes of TVM's definition, whose depthwise filter has a leading channel multiplier."""
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
