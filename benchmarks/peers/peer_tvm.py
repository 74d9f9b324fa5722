"""TVM MetaSchedule as a peer: tunes TVM's own definition of the operator, then runs the best schedule.

Runs in TVM's own environment.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.metaschedule import (
    LABEL,
    POPULATION_PER_TRIAL,
    TUNING_CORES,
    TvmPeer,
    ms,
    pin_threads,
    search_note,
    search_options,
    tvm,
)
from benchmarks.peers.peer import CannotRun, Prepared, Way, load_module, serve

workloads: Any = load_module("tvm.s_tir.meta_schedule.testing.te_workload", "TVM")
te: Any = load_module("tvm.te", "TVM")

MATMULS = {"MM1024": (1024, 1024, 1024), "FFN": (128, 3072, 768)}
"""Rows, columns and reduction of the operators that TVM's list lacks."""


class OperatorsPeer(TvmPeer):
    """TVM's own definitions of the operators, tuned."""

    def prepare(self, request: Mapping[str, Any], inputs: Sequence[np.ndarray[Any, Any]]) -> Prepared:
        name = request["operator"]
        if name not in MATMULS and name not in workloads.CONFIGS:
            raise CannotRun("no equivalent is known")
        if not request["trials"]:
            raise CannotRun("not tuned: 0 trials were asked for")
        function = te.create_prim_func(workloads.matmul(*MATMULS[name])) if name in MATMULS else None
        function = function or workloads.create_te_workload(name, 0)
        round_size = request["round_size"]
        work = Path(request["work"]) / f"rounds-of-{round_size}-from-{POPULATION_PER_TRIAL * round_size}"
        database, took = self.tuned(work, lambda: self._tune(function, work, request))
        schedule = ms.tir_integration.compile_tir(database, function, self.target)
        if schedule is None:
            raise CannotRun("no candidate was valid")
        module = tvm.compile(schedule.mod, target=self.target)
        way = self._way(module["main"], _adapted(name, inputs), request["shape"])
        pin_threads(self.cores)
        return Prepared((way,), {"": self._empty_call()}, {LABEL: took}, (search_note(round_size),))

    def _tune(self, function: Any, work: Path, request: Mapping[str, Any]) -> None:
        trials = request["trials"]
        ms.tune_tir(
            function,
            self.target,
            str(work),
            trials,
            num_tuning_cores=len(TUNING_CORES),
            seed=request["seed"],
            **search_options(min(request["round_size"], trials)),
        )

    def _empty_call(self) -> Callable[[int], None]:
        x = te.placeholder((1,), "float32", name="x")
        function = te.create_prim_func([x, te.compute((1,), lambda i: x[i] + x[i], name="y")])
        module = tvm.compile(function, target=self.target)
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
    serve(OperatorsPeer)
