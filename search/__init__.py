"""Search strategies and task schedulers: plain Python over traces and features, without MLIR or IREE."""

from mlir_sched.search.evolutionary import EvolutionaryOptions, EvolutionarySearch
from mlir_sched.search.random_search import RandomSearch
from mlir_sched.search.replay import ReplaySearch
from mlir_sched.search.strategy import DesignSpace, Observation, Strategy
from mlir_sched.search.task_scheduler import (
    GradientOptions,
    GradientScheduler,
    RoundRobinScheduler,
    TaskProgress,
    TaskScheduler,
)

__all__ = [
    "DesignSpace",
    "EvolutionaryOptions",
    "EvolutionarySearch",
    "GradientOptions",
    "GradientScheduler",
    "Observation",
    "RandomSearch",
    "ReplaySearch",
    "RoundRobinScheduler",
    "Strategy",
    "TaskProgress",
    "TaskScheduler",
]
