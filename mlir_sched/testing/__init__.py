"""Contract tests for parts that are added to the tuner; subclass them for your own (pytest collects the subclass).

Each is imported when it is asked for: those of strategies and cost models need no compiler.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlir_sched.testing.cost_models import CostModelTests
    from mlir_sched.testing.modules import ModuleTests, check_candidates, tasks_of
    from mlir_sched.testing.rewrites import RewriteTests
    from mlir_sched.testing.schedulers import SchedulerTests
    from mlir_sched.testing.strategies import StrategyTests
    from mlir_sched.testing.targets import TargetTests

__all__ = [
    "CostModelTests",
    "ModuleTests",
    "RewriteTests",
    "SchedulerTests",
    "StrategyTests",
    "TargetTests",
    "check_candidates",
    "tasks_of",
]

_HOME = {
    "CostModelTests": "cost_models",
    "ModuleTests": "modules",
    "RewriteTests": "rewrites",
    "SchedulerTests": "schedulers",
    "StrategyTests": "strategies",
    "TargetTests": "targets",
    "check_candidates": "modules",
    "tasks_of": "modules",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
