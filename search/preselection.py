"""The choice of the first candidates by a model of the device, before any candidate was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlir_sched.trace import Trace

DRAWN = 4
"""Traces that are drawn, compiled and estimated per trace that is measured."""


def preselect(traces: Sequence[Trace], seconds: Sequence[float | None], count: int) -> list[Trace]:
    """Return the most promising traces: the fastest of every sketch, then the fastest of all.

    Every sketch has its turn, because the model may misjudge how sketches compare.

    Args:
        traces: Distinct traces.
        seconds: Estimated seconds per call of each; None where there is no estimate, which comes last.
        count: Traces to return; all are returned where there are no more.
    """
    estimated = {trace.key: math.inf if each is None else each for trace, each in zip(traces, seconds, strict=True)}
    fastest = sorted(traces, key=lambda trace: estimated[trace.key])
    leaders: dict[str, Trace] = {}
    for trace in fastest:
        leaders.setdefault(trace.sketch, trace)
    chosen = {trace.key: trace for trace in (*leaders.values(), *fastest)}
    return list(chosen.values())[:count]
