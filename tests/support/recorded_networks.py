"""A recorded run of a network that nobody has: its courses are drawn, and so is what each plan takes."""

from __future__ import annotations

import numpy as np
from replayed_run import matmul_dispatch

from benchmarks.allocation.recorded import (
    Called,
    EndCosts,
    RecordedAlgorithm,
    RecordedCandidate,
    RecordedPlan,
    RecordedRun,
    RecordedTask,
)
from benchmarks.figures.result_table import Machine

SITE = "56x56x64x64"
"""A convolution that has another algorithm in channels last."""


def recorded_network(tasks: int = 6, *, layout_gain: float = 2.0, algorithm_gain: float = 3.0) -> RecordedRun:
    """Return a recorded run.

    Args:
        tasks: Tasks per plan.
        layout_gain: How many times as fast as the default's dispatches those in channels last are, with scripts and
            without.
        algorithm_gain: How many times as fast as the first dispatch in channels last its other algorithm is.
    """
    default = [_task(f"d{index}", 4e-3 / (index + 1)) for index in range(tasks)]
    last = [_task(f"l{index}", 4e-3 / (index + 1) / layout_gain) for index in range(tasks)]
    other = _task("w0", 4e-3 / layout_gain / algorithm_gain)
    algorithm = RecordedAlgorithm(SITE, {"l0": 1}, (Called("w0", "dispatch_w0", 1),))
    return RecordedRun(
        network="drawn",
        family="none",
        machine=Machine("a machine", "a processor", (), 2),
        date="2026-01-01",
        versions={},
        threads=1,
        begin_s=0.5,
        plans=(
            _plan("default", default, 2.0),
            _plan("O3", default, 2.0, code="another"),
            RecordedPlan("data-tiling", 2.0, "IREE does not compile it"),
            _plan("channels_last", last, 2.5, ratio=layout_gain, algorithms=(algorithm,)),
        ),
        tasks=(*default, *last, other),
        sites={SITE: ("Convolutions", SITE)},
        round_s=0.05,
        end=EndCosts("channels_last", 1.5, 0.8, 6.0),
        most_candidates=64,
    )


def _plan(
    name: str,
    tasks: list[RecordedTask],
    build_s: float,
    *,
    code: str = "",
    ratio: float = 1.0,
    algorithms: tuple[RecordedAlgorithm, ...] = (),
) -> RecordedPlan:
    called = tuple(Called(task.key, f"dispatch_{task.key}", 1) for task in tasks)
    call_s = 1.02 * sum(task.untuned_s or 0.0 for task in tasks)
    profile = {f"dispatch_{task.key}": task.untuned_s or 0.0 for task in tasks}
    return RecordedPlan(
        name,
        build_s,
        code=code or name,
        tasks=called,
        call_s=call_s,
        ratio=ratio,
        look_s=1.0,
        profile_s=0.5,
        profile=profile,
        capture_s=0.5,
        algorithms_s=1.0,
        algorithms=algorithms,
    )


def _task(key: str, untuned_s: float) -> RecordedTask:
    """Return a task whose candidates are up to eight times as fast as its untuned code; every fifth one fails."""
    rng = np.random.default_rng([len(key), *key.encode()])
    ratios = 8.0 ** rng.beta(2.0, 3.0, 64)
    candidates = tuple(RecordedCandidate(None if i % 5 == 4 else float(r), 0.4) for i, r in enumerate(ratios))
    dispatch = matmul_dispatch(64, 64, 64)
    return RecordedTask(key, dispatch, "", (), (), (), (), True, untuned_s, 0.6, candidates)
