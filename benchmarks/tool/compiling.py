"""What compiling a candidate takes: candidates per second and CPU seconds of each, for five kinds of dispatch.

One compiler process compiles the untuned code of a task, and then candidates drawn at random, those that the compiler
rejects among them. ``tool_speed.py`` prints the figures and puts them into its table.
"""

import time
from collections.abc import Iterator

import numpy as np
import psutil

from benchmarks.folders import MODELS
from mlir_sched.compiler import CompilerPool, WorkerSet
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks import extract
from mlir_sched.tasks.task import Task

KINDS = ("matmul_256", "conv2d", "depthwise_conv2d", "softmax", "elementwise_1m")
"""A model of each kind: a product, a direct convolution, a depthwise one, reductions, an elementwise chain."""


def drawn_candidates(name: str, target: Target, count: int) -> tuple[Task, list[str]]:
    """Return the task of a model that can be tuned, and scripts for it that are drawn at random."""
    tasks = [(task, task.dispatch) for task in extract(MODELS / f"{name}.mlir", target).tasks]
    task, dispatch = next((task, dispatch) for task, dispatch in tasks if dispatch is not None)
    space, rng = DesignSpace(Space.default(target), dispatch, target), np.random.default_rng(0)
    return task, [space.script(space.sample(rng)) for _ in range(count)]


def compiled_candidates(target: Target, count: int = 16) -> Iterator[tuple[str, str]]:
    """Yield, for each kind, how many candidates of a search one process compiles per second, and its CPU seconds."""
    with WorkerSet(1) as workers, CompilerPool(target.flags, shared=workers) as pool:
        for name in KINDS:
            task, scripts = drawn_candidates(name, target, count)
            list(pool.compile(task.source, [None], task.constants))
            worker = workers.borrow(target.flags)
            assert worker is not None
            workers.give_back(worker)
            process, start = psutil.Process(worker.pid), time.perf_counter()
            before_s = _cpu_s(process)
            results = [result for _, result in pool.compile(task.source, scripts, task.constants)]
            seconds, cpu_s = time.perf_counter() - start, _cpu_s(process) - before_s
            rejected = sum(result.failure is not None for result in results)
            each = f"{count / seconds:.1f} per second, {cpu_s / count:.3f} CPU seconds each"
            yield f"candidates compiled by one process, {name}", f"{each} ({rejected} of {count} rejected)"


def _cpu_s(process: psutil.Process) -> float:
    """Return the seconds that a process, and its children that have ended, have had of all processors."""
    times = process.cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)
