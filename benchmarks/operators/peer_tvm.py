"""TVM MetaSchedule as a peer: tunes TVM's own definition of the operator, then runs the best schedule.

Runs in TVM's own environment.
"""

from __future__ import annotations

import os
import shutil
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
local_builder: Any = load_module("tvm.s_tir.meta_schedule.builder.local_builder", "TVM")
popen_pool: Any = load_module("tvm.support.popen_pool", "TVM")
derived_object: Any = load_module("tvm.ir.utils", "TVM").derived_object

MATMULS = {"MM1024": (1024, 1024, 1024), "FFN": (128, 3072, 768)}
"""Rows, columns and reduction of the operators that TVM's list lacks."""

BUILD_TIMEOUT_S = 60.0
"""Time limit of a candidate's build; MetaSchedule's own limit of 30 s is too short for some on a slow machine."""

POPULATION_PER_TRIAL = 16
"""Traces in the population per trial of a round; MetaSchedule's default is 8, that is 512 for a round of 64."""

LABEL = "TVM MetaSchedule"
ONE_CORE_PER_THREAD = -2
"""TVM's ``kSpecifyOneCorePerThread``: the thread pool's mode that pins every thread to a given core."""

TUNING_CORES = tuple(sorted(os.sched_getaffinity(0)))
"""Cores that the process may use before it is pinned: TVM tunes on all of them, as mlir-sched does."""


class TvmPeer(Peer):
    """TVM on the pinned cores, with a thread on each."""

    def __init__(self, cores: Sequence[int]) -> None:
        super().__init__(cores)
        cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
        self._target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": len(cores)})

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
        _pin_threads(self.cores)
        round_size = request["round_size"]
        rounds = f"rounds of {round_size} trials from populations of {POPULATION_PER_TRIAL * round_size}"
        note = f"{LABEL}: {rounds}; its model is fitted after each, and ranks from the first on"
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
        count = len(TUNING_CORES)
        start = time.monotonic()
        with _on_cores(TUNING_CORES, afterwards=self.cores):
            database = ms.tune_tir(
                function,
                self._target,
                str(work),
                trials,
                num_trials_per_iter=min(round_size, trials),
                builder=WarmBuilder(popen_pool.PopenPoolExecutor(count, BUILD_TIMEOUT_S)),
                cost_model=_eager_model(round_size, count),
                strategy=ms.search_strategy.EvolutionarySearch(population_size=POPULATION_PER_TRIAL * round_size),
                num_tuning_cores=count,
                seed=request["seed"],
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

        def result() -> np.ndarray[Any, Any]:
            run(1)
            made: np.ndarray[Any, Any] = output.numpy()
            return made

        return Way(LABEL, "", run, result)


@derived_object
class WarmBuilder(ms.builder.PyBuilder):  # type: ignore[misc]
    """MetaSchedule's local builder with processes that live from round to round.

    The processes of MetaSchedule's own builder end with every round, and a new process takes 10 s to define the
    intrinsics of all targets before its first build (TVM 0.27): with rounds of 8 trials this would be most of the
    tuning time.

    Args:
        pool: The pool of processes.
    """

    def __init__(self, pool: Any) -> None:
        super().__init__()
        self.pool = pool

    def build(self, build_inputs: Sequence[Any]) -> list[Any]:
        """Return for every candidate the built module or the error."""
        jobs = [(None, None, made.mod, made.target, None) for made in build_inputs]
        results = self.pool.map_with_error_catching(lambda job: local_builder._worker_func(*job), jobs)
        return [self._result(result) for result in results]

    def _result(self, result: Any) -> Any:
        done = result.status == popen_pool.StatusKind.COMPLETE
        return ms.builder.BuilderResult(result.value if done else None, None if done else str(result.value))


def _eager_model(warm_up: int, threads: int) -> Any:
    """Return MetaSchedule's cost model, made to rank from ``warm_up`` samples on and to be fitted after every round.

    By default it ranks at random below 100 samples, and is fitted each time their number has grown by a fifth.
    """
    return ms.cost_model.XGBModel(num_warmup_samples=warm_up, adaptive_training=False, num_tuning_cores=threads)


def _pin_threads(cores: Sequence[int]) -> None:
    """Pin every thread of TVM's pool to its own core and the calling thread to the first; do nothing for one core."""
    if len(cores) == 1:
        return
    os.environ["TVM_BIND_THREADS"] = "1"  # the pool reads this variable when it is set up, not when the process starts
    tvm.get_global_func("runtime.config_threadpool")(ONE_CORE_PER_THREAD, len(cores), [str(core) for core in cores])
    os.sched_setaffinity(0, cores[:1])


@contextmanager
def _on_cores(cores: Sequence[int], *, afterwards: Sequence[int]) -> Iterator[None]:
    """Run this process, and the processes that it starts, on some cores, and then on the cores ``afterwards``."""
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, afterwards)


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
