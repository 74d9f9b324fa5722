"""Contract tests for parts that are added to the tuner; subclass them for your own (pytest collects the subclass)."""

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
