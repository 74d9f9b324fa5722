"""Measured tasks with made-up times."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from replayed_run import TARGET, matmul_dispatch

from benchmarks.search.enumeration import enumerate_traces
from mlir_sched.corpus import MeasuredTask, Measurement, Origin
from mlir_sched.errors import FailureClass
from mlir_sched.payload import Dispatch
from mlir_sched.search import RandomSearch
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.trace import Trace

DISPATCH = matmul_dispatch(64, 96, 128)
UNTUNED_S = 1e-3


def draws(count: int, dispatch: Dispatch = DISPATCH, target: Target = TARGET) -> list[Trace]:
    """Return distinct traces that are legal for a dispatch on a target."""
    space = DesignSpace(Space.default(target), dispatch, target)
    return RandomSearch(space, np.random.default_rng(0)).suggest(count)


def timed(trace: Trace, ratio: float = 2.0, origin: Origin = Origin.RANDOM) -> Measurement:
    return Measurement(trace, UNTUNED_S / ratio, (ratio, ratio / 2, 2 * ratio), None, origin)


def failed(trace: Trace) -> Measurement:
    return Measurement(trace, math.inf, None, FailureClass.WRONG_RESULT, Origin.MODEL)


def measured_task(
    measured: Iterable[Measurement] = (),
    dispatch: Dispatch = DISPATCH,
    *,
    target: Target = TARGET,
    key: str = "key",
    context: str = "threads=1",
    complete: bool = False,
) -> MeasuredTask:
    return MeasuredTask(key, "matmul", dispatch, target, context, UNTUNED_S, tuple(measured), complete)


def whole_task() -> MeasuredTask:
    """Return a task with all candidates of a part of its design space, whose times depend on their decisions."""
    space = DesignSpace(Space.default(TARGET), DISPATCH, TARGET)
    *pinned, _, _, _, _ = space.sample(np.random.default_rng(0), space.sketches[0]).decisions
    given = {decision.name: decision.value for decision in pinned}
    traces = list(enumerate_traces(space, space.sketches[0], given))
    ratios = [1 + 99 / (1 + int(trace.key[:4], 16) % 97) for trace in traces]
    return measured_task(list(map(timed, traces, ratios)), complete=True)
