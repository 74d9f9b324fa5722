"""What tests of emission share: a dispatch with its space, timings, and what stands in the place of processes."""

from __future__ import annotations

from typing import Any

from replayed_run import TARGET, matmul_dispatch

from mlir_sched.outcome import Timing
from mlir_sched.runner import RunnerOptions
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space

DISPATCH = matmul_dispatch(64, 96, 32)
SPACE = DesignSpace(Space.default(TARGET), DISPATCH, TARGET)
OPTIONS = RunnerOptions()


def timing(ratio: float, width: float = 0.002) -> Timing:
    return Timing(1e-3 / ratio, 1e-3, 1e-3, 20, ratio, ratio - width, ratio + width)


class Nothing:
    """A context manager in the place of processes."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> Nothing:
        return self

    def __exit__(self, *_: object) -> None:
        pass
