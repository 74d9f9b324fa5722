"""MetaSchedule as all peers with TVM use it: its search with small rounds, its builder, and the cores it runs on.

Imported in TVM's own environment.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.peers.peer import Peer, load_module
from benchmarks.peers.tuning import Tuning, kept_tuning

tvm: Any = load_module("tvm", "TVM")
ms: Any = load_module("tvm.s_tir.meta_schedule", "TVM")
local_builder: Any = load_module("tvm.s_tir.meta_schedule.builder.local_builder", "TVM")
popen_pool: Any = load_module("tvm.support.popen_pool", "TVM")
derived_object: Any = load_module("tvm.ir.utils", "TVM").derived_object

LABEL = "TVM MetaSchedule"

BUILD_TIMEOUT_S = 60.0
"""Time limit of a candidate's build; MetaSchedule's own limit of 30 s is too short for some on a slow machine."""

POPULATION_PER_TRIAL = 16
"""Traces in the population per trial of a round; MetaSchedule's default is 8, that is 512 for a round of 64."""

ONE_CORE_PER_THREAD = -2
"""TVM's ``kSpecifyOneCorePerThread``: the thread pool's mode that pins every thread to a given core."""

TUNING_CORES = tuple(sorted(os.sched_getaffinity(0)))
"""Cores that the process may use before it is pinned: TVM tunes on all of them, as mlir-sched does."""


class TvmPeer(Peer):
    """TVM on the pinned cores, with a thread on each.

    Attributes:
        target: This machine's CPU as TVM's target, with as many cores.
    """

    def __init__(self, cores: Sequence[int]) -> None:
        super().__init__(cores)
        cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
        self.target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": len(cores)})

    def tuned(self, work: Path, tune: Callable[[], object]) -> tuple[Any, Tuning]:
        """Return MetaSchedule's database in a folder, and the trials and seconds of making it, now or earlier.

        MetaSchedule cannot resume a tuning run: the work of a run that was killed is discarded and does not count.
        """
        took = kept_tuning(work)
        if took is None:
            shutil.rmtree(work, ignore_errors=True)
            start = time.monotonic()
            with on_cores(TUNING_CORES, afterwards=self.cores):
                tune()
            trials = len(ms.database.JSONDatabase(work_dir=str(work)).get_all_tuning_records())
            took = Tuning(trials, time.monotonic() - start)
            took.keep(work)
        return ms.database.JSONDatabase(work_dir=str(work)), took


def search_options(round_size: int) -> dict[str, Any]:
    """Return arguments for MetaSchedule's tuning functions: rounds of a size, on all of :data:`TUNING_CORES`."""
    count = len(TUNING_CORES)
    return {
        "num_trials_per_iter": round_size,
        "builder": WarmBuilder(popen_pool.PopenPoolExecutor(count, BUILD_TIMEOUT_S)),
        "cost_model": _eager_model(round_size, count),
        "strategy": ms.search_strategy.EvolutionarySearch(population_size=POPULATION_PER_TRIAL * round_size),
    }


def search_note(round_size: int) -> str:
    """Return a sentence on how MetaSchedule searches with these options."""
    rounds = f"rounds of {round_size} trials from populations of {POPULATION_PER_TRIAL * round_size}"
    return f"{LABEL}: {rounds}; its model is fitted after each, and ranks from the first on"


@derived_object
class WarmBuilder(ms.builder.PyBuilder):  # type: ignore[misc]
    """MetaSchedule's local builder with processes that live from round to round.

    The processes of MetaSchedule's own builder end with every round, and a new process takes 10 s to define the
    intrinsics of all targets before its first build (TVM 0.27): with rounds of 8 trials this would be most of the
    tuning time.
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


def pin_threads(cores: Sequence[int]) -> None:
    """Pin every thread of TVM's pool to its own core and the calling thread to the first; do nothing for one core."""
    if len(cores) == 1:
        return
    os.environ["TVM_BIND_THREADS"] = "1"  # the pool reads this variable when it is set up, not when the process starts
    tvm.get_global_func("runtime.config_threadpool")(ONE_CORE_PER_THREAD, len(cores), [str(core) for core in cores])
    os.sched_setaffinity(0, cores[:1])


@contextmanager
def on_cores(cores: Sequence[int], *, afterwards: Sequence[int]) -> Iterator[None]:
    """Run this process, and the processes that it starts, on some cores, and then on the cores ``afterwards``."""
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, afterwards)
