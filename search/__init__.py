"""Search strategies and task schedulers: plain Python over traces and features, without MLIR or IREE."""

from mlir_sched.search.evolutionary import Acquisition, EvolutionaryOptions, EvolutionarySearch
from mlir_sched.search.reach import Reach, Shown
from mlir_sched.search.strategy import Observation, RandomSearch, SearchSpace, SearchStrategy, StrategyFactory
from mlir_sched.search.task_scheduler import (
    Demand,
    GradientOptions,
    GradientScheduler,
    RoundRobinScheduler,
    TaskProgress,
    TaskScheduler,
)

__all__ = [
    "Acquisition",
    "Demand",
    "EvolutionaryOptions",
    "EvolutionarySearch",
    "GradientOptions",
    "GradientScheduler",
    "Observation",
    "RandomSearch",
    "Reach",
    "RoundRobinScheduler",
    "SearchSpace",
    "SearchStrategy",
    "Shown",
    "StrategyFactory",
    "TaskProgress",
    "TaskScheduler",
]
